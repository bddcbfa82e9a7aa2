package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kindOfName classifies the name of a field, variable, key or flag by what it implies about the value.
type kindOfName uint8

const (
	// plainName implies nothing.
	plainName kindOfName = iota
	// maybeName is a credential's name for variables, flags, headers and keys of ConfigMaps: AUTH. In files, it is
	// one unless the value is a word.
	maybeName
	// termName is one there unless the value is a word: an agreement to a LICENSE, the name of a COOKIE.
	termName
	// keyName is a maybeName there, and elsewhere a credential's name unless the value is a word: routing_key.
	keyName
	// wordName names a credential unless the value is a word.
	wordName
	// refName may also refer to a Secret's name: tlsSecret, passwordKey. A value that cannot be an object's
	// name is a credential.
	refName
	// manyName names several credentials: tokens. A number is their count.
	manyName
	// fileName names a credential in a file, and elsewhere refers to a Secret: smtp_auth_secret.
	fileName
	// hookName names a URL whose path may be a credential: SLACK_WEBHOOK_URL.
	hookName
	// loginName names users, with their passwords behind a colon.
	loginName
	// credentialName names a credential.
	credentialName
)

// in returns what a name implies in a text that is read in this manner.
func (k kindOfName) in(how manner) kindOfName {
	switch {
	case k == fileName && how != asFile && how != asCommand:
		return refName
	case k == fileName:
		return credentialName
	case k < maybeName || k > keyName:
		return k
	case k == termName && how == asCommand, k == keyName && how != asCommand, how == asFile:
		return wordName
	case how == asCommand:
		return maybeName
	}
	return plainName
}

// A name is split into words at characters other than letters and digits, and before capitals. It is a
// credential's name if it has one of the words, one of the pairs of consecutive words, or a word with one of
// the endings, unless its last word marks it as a description. It may be one if it ends with one of the lasts.
// Files that hold only credentials are known by name.
var (
	words = set(`password passwords passwd passwort passphrase passphrases passcode pwd pswd pass authtok secret secrets
		token tokens credential credentials creds apikey apikeys psk htpasswd jwt bearer
		dsn connectionstring connectionstrings kubeconfig keytab mnemonic requirepass masterauth sshpass
		bindpw userpw dbpw rootpw passw passkey
		restuserkey passwrd kennwort senha wachtwoord contrasena motdepasse`)
	lasts = set(`auth pat pw headers salt pepper`)
	// fieldLasts are those that a field's name may end with, too.
	fieldLasts = set(`auth pat`)
	terms      = set(`cookie license encrypt`)
	hookNames  = set(`webhook, webhooks, webhook url, webhook urls, hook url, webhook uri, webhook endpoint`)
	pairs      = set(`api key, api keys, app key, application key, access key, access keys, secret key, secret keys,
		private key, private keys, encryption key, encryption keys, encrypt key, cipher key, crypto key, fernet key,
		fernet keys, signing key, signing keys, signature key, account key, shared key, preshared key, storage key,
		license key, master key, root key, unseal key, unseal keys, recovery key, recovery keys, client key, ssh key,
		deploy key, hmac key, aes key, host key, session key, cookie key, auth key, jwt key,
		jwk key, rsa key, dsa key, pgp key, gpg key, subscription key, integration key, ingest key, ingestion key,
		instrumentation key, consumer key, merchant key, wireguard key, sas url, connection string, connection strings, conn string,
		conn str, jaas config, authorization header, auth header, auth headers,
		snmp community, honeycomb team, recovery code, recovery codes, backup codes, otp seed, totp seed,
		cookie encryption, priv key, sec key, enc key, join key, sdk key, gossip key, validation key, decryption key, nonce key,
		provision key, activation key, deterministic key, installation key, insert key, keystore key, truststore key, azure key, hmac encoded, registration key, key base, erlang cookie, bind pw, user pw, db pw, root pw, admin pw`)
	// maybePairs relate to pairs as lasts and terms relate to words.
	maybePairs = set(`hash key, block key, routing key, write key, publish key, tunnel key, rails key, server key, admin key,
		service key, service keys, data key, env key, certificate key, user key, in key, set key`)
	endings = strings.Fields(`password passwords passwd passphrase secret secrets token tokens apikey pass pwd credential credentials
		connectionstring`)
	// notEndings are words that only end like a credential's.
	notEndings = set(`compass bypass surpass encompass trespass underpass overpass`)
	// keyUses are words before the last one of a key's name that make it a credential's: ENCRYPTION_PRIMARY_KEY.
	keyUses   = set(`encryption encrypt signing cipher crypto sensitive`)
	describes = set(`name names namespace namespaces url urls uri uris link links endpoint endpoints host hosts hostname port
		issuer audience audiences scope scopes file files filename path paths dir directory folder mount mounts mountpath
		ttl age expiry expires expire expired expiration lifetime duration seconds minutes hours days timeout interval
		period length len size min max limit limits count counts total used policy policies type types mode method
		format enabled enable disabled disable required require optional ref refs reference references selector
		provider providers algorithm alg algorithms header class domain status state phase conditions kind store stores
		version versions arn engine backend role roles manager managers management group groups resource resources
		template templates label labels annotation annotations property properties source sources location strategy
		rotation rotate rotated generator generation update updated updates sync synced syncer controller operator
		operators service services server servers strength complexity prefix suffix usage time date at created changed
		validity validation validator verification verify verifier review reviews reviewer exchange request requests
		response allowed allow available exists present needed supported volume volumes projection config configs configuration
		options settings spec bucket region env image ms millis sec secs mins hour month months year years bytes kb mb
		lifespan backend backends hasher hashers encoder decoder encryptor decryptor encrypter handler filter filters factory parser
		loader reader writer resolver checker listener interceptor injector detector scanner matcher limiter bucketing builder algo in ip scheme
		converter extractor serializer estimator counter cleaner renewer rotator signer tester formatter
		helper helpers description example title help encryption pattern regex visibility component`)
	// textWords are the words before a token of a text, as language models use them, and before the numbers of such tokens.
	textWords = set(`eos bos pad unk sep cls mask stop special start end prompt completion input output generated new extra
		image max min num sos separator vocabulary`)
	// references are word pairs that refer to a Secret, or to a key in one, by its name.
	references = set(`auth secret, tls secret, ssl secret, pull secret, pull secrets, cert secret, certs secret,
		certificate secret, ca secret, existing secret, credentials secret, credential secret, password secret,
		username secret, backup secret, target secret, source secret, config secret, kubeconfig secret,
		admin secret, from secret, connection secret, rotation secret, storage secret, image secret, registry secret, key secret,
		password key, passwd key, username key, token key, secret property, credentials key, credential id,
		encryption secret, ingress secret, default secret, external secret, kubernetes secret`)
	files = set(`.dockerconfigjson, .dockercfg, .git-credentials, .htpasswd, .netrc, .pgpass, .my.cnf, .npmrc, .pypirc,
		id_rsa, id_dsa, id_ecdsa, id_ed25519, tls.key, pgpass, pgpass.conf, userlist.txt, keyring`)
	plurals = set(`passwords passphrases secrets tokens apikeys keys`)
	// communities are passwords of SNMP.
	communities = set(`community rocommunity rwcommunity rocommunity6 rwcommunity6 trapcommunity`)
	// messages are the first words of names of texts for users.
	messages = set(`message messages msg label labels error errors text texts title i18n tooltip validation`)
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

// stems are texts, matched case-insensitively, of which every credential's name contains one, but for the short lasts.
var stems = func() (stems []string) {
	var all []string
	all = append(all, "authorization", "community")
	for _, m := range []map[string]bool{words, lasts, terms, files} {
		for s := range m {
			if len(s) > 3 || words[s] {
				all = append(all, s)
			}
		}
	}
	all = append(all, endings...)
	for _, m := range []map[string]bool{pairs, maybePairs, hookNames} {
		for pair := range m {
			first, last, _ := strings.Cut(pair, " ") // there are fewer different last words
			switch {
			case m["webhook"]:
				last = "hook"
			case first == "key":
				last = first
			case len(last) < 3: // endsShort
				continue
			}
			all = append(all, last)
		}
	}
	slices.Sort(all)
	slices.SortStableFunc(all, func(a, b string) int { return len(a) - len(b) })
	for _, s := range all {
		if !slices.ContainsFunc(stems, func(short string) bool { return strings.Contains(s, short) }) {
			stems = append(stems, s)
		}
	}
	return stems
}()

func trimDigits(s string) string {
	for s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
		s = s[:len(s)-1]
	}
	return s
}

// maxName is the number of bytes at the end of a name that are checked.
const maxName = 256

// injectors are domains of annotations that give a credential's location in a vault.
var injectors = []string{"vault.hashicorp.com/", "vault.security.banzaicloud.io/", "openbao.org/"}

// nameKind classifies a name.
func nameKind(name string) kindOfName { return factsOf(name).kind }

func findKind(name string) kindOfName {
	if files[name] || communities[name] {
		return credentialName
	}
	if slices.ContainsFunc(injectors, func(domain string) bool { return strings.HasPrefix(name, domain) }) {
		if strings.HasSuffix(name, "-token") {
			return wordName
		}
		return plainName
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 { // the domain only says who defined it
		name = name[i+1:]
	}
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	var space [16]string
	return wordsKind(splitWords(name, space[:0]))
}

func wordsKind(parts []string) kindOfName {
	if len(parts) == 0 {
		return plainName
	}
	last := wordRoles[parts[len(parts)-1]]
	if last&isHookWord != 0 {
		return hookName
	}
	n := len(parts)
	kind, described := plainName, last&isDescribing != 0 || n > 2 && parts[n-2] == "per" && parts[n-3] == "tokens" // a rate
	for i := range parts[1:] {
		switch said := pairKinds[twoWords{parts[i], parts[i+1]}]; {
		case said == plainName:
		case i > 0 && pairKinds[twoWords{parts[i-1], parts[i]}] == refName: // fromConnectionSecretKey
			return refName
		case i+2 == len(parts): // at the end; in "webhook url", url belongs to it
			switch {
			case said == refName && n > 2 && parts[i+1] == "secret" && (parts[i] == "auth" || parts[i] == "credentials"):
				return fileName
			case said != credentialName:
				return said
			}
			kind = said
		case said == credentialName && !described:
			kind = said
		}
	}
	switch {
	case kind != plainName:
	case described:
		return plainName
	case last&isTerm != 0:
		return termName
	case fieldLasts[parts[n-1]]:
		return keyName
	case last&isLast != 0, len(parts[n-1]) > 6 && strings.HasSuffix(parts[n-1], "salt"):
		return maybeName
	case parts[n-1] == "key" && slices.ContainsFunc(parts[:n-1], func(w string) bool { return keyUses[w] }):
		return credentialName
	case isTextToken(parts):
		return plainName
	case parts[len(parts)-1] != "authorization" && !slices.ContainsFunc(parts, isCredentialWord):
		return plainName
	}
	if last&isPlural != 0 {
		return manyName
	}
	return credentialName
}

// isTextToken reports whether a name is that of a token of a text: eos_token, stop_token_ids.
func isTextToken(parts []string) bool {
	n := len(parts)
	if n > 2 && (parts[n-1] == "id" || parts[n-1] == "ids") {
		n--
	}
	return n > 1 && (parts[n-1] == "token" || parts[n-1] == "tokens") && textWords[parts[n-2]]
}

// isCredentialWord reports whether a word makes a name a credential's. It may end with one, or be two words in one: apikey.
func isCredentialWord(w string) bool {
	return wordRoles[w]&isWord != 0 ||
		len(w) > 4 && slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(w, e) }) && !notEndings[w] ||
		len(w) > 5 && strings.HasSuffix(w, "key") && pairKinds[twoWords{w[:len(w)-3], "key"}] == credentialName
}

// wordRole holds the sets that a word is in, for a single look-up.
type wordRole uint8

const (
	isWord wordRole = 1 << iota
	isDescribing
	isLast
	isPlural
	isHookWord
	isTerm
)

var wordRoles = func() map[string]wordRole {
	m := map[string]wordRole{}
	for _, of := range []struct {
		set  map[string]bool
		role wordRole
	}{{words, isWord}, {describes, isDescribing}, {lasts, isLast}, {terms, isTerm}, {plurals, isPlural}, {hookNames, isHookWord}} {
		for w := range of.set {
			m[w] |= of.role
		}
	}
	return m
}()

// pairKinds classifies two consecutive words, from all sets of pairs.
var pairKinds = func() map[twoWords]kindOfName {
	m := map[twoWords]kindOfName{}
	for _, of := range []struct {
		set  map[string]bool
		kind kindOfName
	}{{pairs, credentialName}, {maybePairs, keyName}, {hookNames, hookName}, {references, refName}} {
		for name := range of.set {
			if a, b, found := strings.Cut(name, " "); found {
				m[twoWords{a, b}] = of.kind
			}
		}
	}
	return m
}()

type twoWords [2]string

// splitWords appends the words of a name in lower case, without trailing digits: DB_PASSWORD, dbPassword2 and
// db-password give db and password; APIKey gives api and key.
func splitWords(name string, out []string) []string {
	lower := strings.ToLower(name)
	if len(lower) != len(name) { // some letters change length with case
		name = lower
	}
	from := -1
	flush := func(to int) {
		if from >= 0 {
			if w := trimDigits(lower[from:to]); w != "" {
				out = append(out, w)
			}
		}
		from = -1
	}
	var before rune
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
		case from < 0:
			from = i
		case unicode.IsUpper(r) && (!unicode.IsUpper(before) || startsLower(name[i+utf8.RuneLen(r):])):
			flush(i)
			from = i
		}
		before = r
	}
	flush(len(name))
	return out
}

func startsLower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
}

// keyParents are fields below which a field named key holds a key, or its name: {api: {key: x}}.
var keyParents = set(`api access encryption signing private master license account`)

// fieldKind classifies a field's name together with its parent's. Below a reference to a Secret, a credential's
// name may stand for a key's name: {passwordSecret: {secretName: db, password: password}}.
func fieldKind(parent, name string, facts facts) kindOfName {
	if strings.EqualFold(name, "key") && len(parent) < maxName {
		switch lower := strings.ToLower(parent); {
		case lower == "jwt":
			return credentialName
		case keyParents[lower]:
			return refName
		}
	}
	switch {
	case strings.HasSuffix(name, "auth.user.info"), strings.HasSuffix(name, "AuthIdent"): // of Kafka's registry, and Yarn
		return loginName
	case name == "pass" && parent == "summary": // a report's number of passed checks
		return manyName
	case name == "secret" && parent == "status": // its name, as the controller reports it
		return refName
	case name == "keyring" && parent == "rbd": // its path
		return plainName
	}
	if facts.kind == credentialName && len(parent) < maxName && nameKind(parent) == refName {
		return refName
	}
	return facts.kind
}
