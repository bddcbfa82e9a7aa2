package redact

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A name looks like that of a credential if, split into words (at what is no letter or digit, and
// before capitals), it has one of the words, one of the pairs of words in a row, a word with one of
// the endings, or ends with one of the lasts; unless its last word says that it only describes one.
// Files that hold nothing but credentials are known by their names.
var (
	words = set(`password passwords passwd passphrase passcode pwd pass secret secrets token tokens
		credential credentials creds apikey accesskey secretkey privatekey authorization htpasswd jwt
		bearer dsn connectionstring`)
	lasts = set(`auth cookie`)
	pairs = set(`api key, api keys, access key, access keys, secret key, private key, encryption key,
		signing key, account key, shared key, storage key, license key, master key, client key, ssh key,
		deploy key, hmac key, host key, connection string, conn string, webhook url`)
	endings = strings.Fields(`password passwd passphrase secret token apikey accesskey secretkey
		privatekey credential credentials connectionstring`)
	describes = set(`name names namespace url uri endpoint host port issuer audience scope scopes file
		files filename path dir directory mount ttl age expiry expires expiration lifetime seconds
		minutes hours timeout interval period length size min max limit count policy type mode method
		format enabled enable disabled required optional ref selector provider algorithm header class
		domain`)
	files = set(`.dockerconfigjson, .dockercfg, .git-credentials, .htpasswd, .netrc, .pgpass, id_rsa,
		id_dsa, id_ecdsa, id_ed25519`)
)

func set(list string) map[string]bool {
	split := strings.Fields
	if strings.Contains(list, ",") {
		split = func(s string) []string { return strings.Split(s, ",") }
	}
	m := map[string]bool{}
	for _, s := range split(list) {
		m[strings.Join(strings.Fields(s), " ")] = true
	}
	return m
}

// credentialName tells whether a variable, key or flag of this name likely holds a credential.
func credentialName(name string) bool {
	if !mayBeCredential(name) {
		return false
	}
	if files[name] {
		return true
	}
	parts := splitWords(name)
	if len(parts) == 0 {
		return false
	}
	last := parts[len(parts)-1]
	described := describes[last]
	for i := range parts[1:] {
		atEnd := i+2 == len(parts) // of webhook url, url is a part
		if pairs[parts[i]+" "+parts[i+1]] && (atEnd || !described) {
			return true
		}
	}
	if described || lasts[last] {
		return lasts[last]
	}
	for _, w := range parts {
		if words[w] {
			return true
		}
		for _, e := range endings {
			if strings.HasSuffix(w, e) {
				return true
			}
		}
	}
	return false
}

// stems are texts of which every credential's name has one, in letters of any case.
var stems = func() (stems []string) {
	var all []string
	for _, m := range []map[string]bool{words, lasts, files} {
		all = slices.AppendSeq(all, maps.Keys(m))
	}
	all = append(all, endings...)
	for pair := range pairs {
		_, last, _ := strings.Cut(pair, " ") // of which there are fewer than of the first
		all = append(all, last)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, s := range all {
		if !slices.ContainsFunc(stems, func(short string) bool { return strings.Contains(s, short) }) {
			stems = append(stems, s)
		}
	}
	return stems
}()

// mayBeCredential is a quick look at a name: false where credentialName is. What is long, or not ASCII, may
// be anything.
func mayBeCredential(name string) bool {
	var space [64]byte
	if len(name) > len(space) {
		return true
	}
	lower := space[:len(name)]
	for i := range len(name) {
		c := name[i]
		if c >= utf8.RuneSelf {
			return true
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	for _, s := range stems {
		if bytes.Contains(lower, []byte(s)) {
			return true
		}
	}
	return false
}

// splitWords returns the words of a name in lower case, without digits at their ends: DB_PASSWORD,
// dbPassword2 and db-password are db and password; APIKey is api and key.
func splitWords(name string) []string {
	var out []string
	var word []rune
	flush := func() {
		if w := strings.TrimRight(string(word), "0123456789"); w != "" {
			out = append(out, strings.ToLower(w))
		}
		word = word[:0]
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush()
		}
		word = append(word, r)
	}
	flush()
	return out
}
