package redact

import (
	"iter"
	"regexp"
	"slices"
	"strings"
)

// span is a part of a text that is a credential. Its name says which kind, because a text may hold several.
type span struct {
	from, to int
	name     string
}

// charset is the set of bytes in a token.
type charset uint8

const (
	alnum charset = iota // letters and digits
	word                 // alnum, _ and -
	dots                 // word, dots, ~, + and =
	graph                // all but white space, quotes and list separators
)

// token is the form of a vendor's credentials: its prefix, and the minimum length of the rest.
type token struct {
	prefix string
	min    int
	chars  charset
}

// tokens are unambiguous forms. Sources: the vendors' documentation of their tokens; the rules of gitleaks,
// detect-secrets and trufflehog list the vendors that use prefixes.
var tokens = []token{
	// source code, packages, builds
	{"ghp_", 20, alnum}, {"gho_", 20, alnum}, {"ghu_", 20, alnum}, {"ghs_", 20, dots}, {"ghr_", 20, alnum}, {"github_pat_", 20, word},
	{"glpat-", 16, dots}, {"gldt-", 16, word}, {"glrt-", 16, dots}, {"glcbt-", 16, word}, {"glptt-", 16, word}, {"glft-", 16, word},
	{"glimt-", 16, word}, {"glagent-", 16, word}, {"gloas-", 16, word}, {"glsoat-", 16, word}, {"glffct-", 16, word},
	{"npm_", 30, alnum}, {"pypi-", 40, word}, {"rubygems_", 32, alnum}, {"AKCp", 40, alnum}, {"CLOJARS_", 40, alnum},
	{"dckr_pat_", 20, word}, {"dckr_oat_", 20, word}, {"sgp_", 32, word}, {"sntrys_", 30, dots}, {"sntryu_", 30, alnum},
	{"NRAK-", 20, alnum}, {"NRII-", 20, word}, {"NRJS-", 16, alnum}, {"PMAK-", 24, word}, {"lin_api_", 30, alnum}, {"figd_", 30, word},
	{"ATATT3", 40, dots}, {"ATCTT3", 40, dots}, {"ATBB", 28, alnum}, {"rdme_", 40, alnum}, {"sqa_", 30, alnum}, {"sqp_", 30, alnum}, {"squ_", 30, alnum}, {"-pbkdf2-", 32, graph}, {"pul-", 40, alnum}, {"phx_", 40, alnum},
	// clouds
	{"AKIA", 16, alnum}, {"ASIA", 16, alnum}, {"ABIA", 16, alnum}, {"ACCA", 16, alnum}, {"ABSK", 60, dots}, {"bedrock-api-key-", 20, dots},
	{"AIza", 30, word}, {"GOCSPX-", 20, word}, {"ya29.", 20, dots}, {"LTAI", 16, alnum}, {"dop_v1_", 40, alnum}, {"doo_v1_", 40, alnum},
	{"dor_v1_", 40, alnum}, {"dapi", 32, alnum}, {"pscale_", 24, dots}, {"nfp_", 30, alnum}, {"tskey-", 16, word}, {"hvs.", 20, word},
	{"hvb.", 20, word}, {"hvr.", 20, word}, {"FlyV1 ", 20, graph}, {"fo1_", 30, word}, {"fm2_", 30, graph}, {"rnd_", 28, alnum},
	{"HRKU-", 30, word}, {"y0_AgAAA", 20, word}, {"AQVN", 35, word}, {"YCAJE", 20, word}, {"ops_eyJ", 40, dots}, {"AGE-SECRET-KEY-1", 40, alnum},
	{"dp.pt.", 30, alnum}, {"dp.st.", 30, dots}, {"dp.ct.", 30, alnum}, {"dt0c01.", 24, dots}, {"dt0s16.", 24, dots}, {"glsa_", 30, word},
	{"glc_", 30, dots}, {"eyJrIjoi", 30, dots}, {"ico-", 32, alnum}, {"sha256~", 40, word}, {"SWMTKN-", 40, word}, {"LaunchDarkly-", 30, word},
	// payment, mail, chat, models
	{"sk_live_", 10, alnum}, {"sk_test_", 10, alnum}, {"rk_live_", 10, alnum}, {"rk_test_", 10, alnum}, {"whsec_", 16, dots}, {"sq0atp-", 20, word},
	{"sq0csp-", 20, word}, {"shpat_", 30, alnum}, {"shpca_", 30, alnum}, {"shppa_", 30, alnum}, {"shpss_", 30, alnum}, {"shippo_live_", 30, alnum},
	{"EZAK", 50, alnum}, {"EZTK", 50, alnum}, {"duffel_live_", 30, word}, {"FLWSECK", 16, word}, {"SG.", 40, dots}, {"xkeysib-", 40, word},
	{"xsmtpsib-", 40, word}, {"pat-na1-", 30, word}, {"pat-eu1-", 30, word}, {"xoxb-", 10, word}, {"xoxp-", 10, word}, {"xoxa-", 10, word},
	{"xoxr-", 10, word}, {"xoxs-", 10, word}, {"xoxe-", 10, word}, {"xoxe.", 20, dots}, {"xoxo-", 10, word}, {"xoxc-", 10, word}, {"xoxd-", 10, graph},
	{"xapp-", 10, word}, {"ntn_", 40, alnum}, {"secret_", 43, alnum}, {"tfp_", 40, dots}, {"EAACEdEose0cBA", 10, alnum}, {"sk-proj-", 20, word},
	{"sk-svcacct-", 20, word}, {"sk-admin-", 20, word}, {"sk-ant-", 20, word}, {"sk-or-v1-", 30, alnum}, {"sk-", 40, alnum}, {"hf_", 30, alnum},
	{"api_org_", 30, alnum}, {"gsk_", 40, alnum}, {"pplx-", 40, alnum}, {"r8_", 36, alnum}, {"xai-", 60, alnum}, {"lsv2_", 30, word}, {"pcsk_", 40, word},
	{"v1.local.", 20, dots}, {"v2.local.", 20, dots}, {"v3.local.", 20, dots}, {"v4.local.", 20, dots},
	// hashes of passwords
	{"$2a$", 50, graph}, {"$2b$", 50, graph}, {"$2x$", 50, graph}, {"$2y$", 50, graph}, {"$apr1$", 20, graph}, {"$5$", 40, graph}, {"$6$", 60, graph}, {"$y$", 40, graph},
	{"$argon2", 40, graph}, {"$pbkdf2", 40, graph}, {"pbkdf2:sha", 30, graph}, {"pbkdf2_sha", 30, graph}, {"SCRAM-SHA-256$", 30, graph},
	{"{SSHA}", 20, graph}, {"{SHA}", 20, graph}, {"{SSHA256}", 20, graph}, {"{SSHA512}", 20, graph}, {"{PLAIN}", 6, graph},
}

// tokenForm matches tokens that have no prefix, by their whole form: of Terraform Cloud, Discord, Telegram, Azure AD,
// older Vault (service, batch and recovery), and kubeadm. tunnel matches those of Cloudflare's tunnels, decoded.
var (
	tokenForm = regexp.MustCompile(`^(?:[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}|[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,45}|\d{8,10}:AA[\w-]{32,34}|` +
		`[\w.~-]{3}[78]Q~[\w.~-]{31,36}|[sr]\.[A-Za-z0-9]{24}(?:\.[A-Za-z0-9]{4,6})?|b\.[\w-]{80,}|[a-z0-9]{6}\.[a-z0-9]{16})$`)
	tunnel = regexp.MustCompile(`^\{"a":"[0-9a-f]{32}","t":"[0-9a-f-]{36}","s":"`)
)

// minForm is the length of the shortest of them: abcdef.0123456789abcdef.
const minForm = 23

// tokenForms finds them. All have digits, and kubeadm's has them in its secret.
func (t *search) tokenForms() {
	for at := range runs(t.s, &formBytes, minForm) {
		whole := t.s[at.from:at.to]
		if !strings.ContainsAny(whole, ".~:") {
			continue
		}
		for _, around := range [...]string{"", ".:", ".:-_~"} { // punctuation
			if s := strings.Trim(whole, around); len(s) >= minForm && strings.ContainsAny(s[8:], "0123456789") && tokenForm.MatchString(s) {
				from := at.from + strings.Index(whole, s)
				t.found = append(t.found, span{from, from + len(s), "token"})
				break
			}
		}
	}
}

// formBytes are the bytes of such tokens.
var formBytes = bytesOf("_-.~:")

// coded finds base64 of texts with credentials within a longer text.
func (t *search) coded() {
	for at := range runs(t.s, &base64Bytes, minCoded) {
		for at.to < len(t.s) && t.s[at.to] == '=' {
			at.to++
		}
		if at.to-at.from < len(t.s) && hidesWhole(t.s[at.from:at.to], t.within+1) {
			t.found = append(t.found, span{at.from, at.to, "data"})
		}
	}
}

var base64Bytes = bytesOf("+/")

// runs yields the runs of at least n bytes of a set. It looks at every nth byte, and around those of the set.
func runs(s string, set *[256]bool, n int) iter.Seq[span] {
	return func(yield func(span) bool) {
		for i := 0; i+n <= len(s); {
			if !set[s[i+n-1]] { // no run of that length begins here
				i += n
				continue
			}
			from, to := i+n-1, i+n
			for from > i && set[s[from-1]] {
				from--
			}
			for to < len(s) && set[s[to]] {
				to++
			}
			if to-from >= n && !yield(span{from: from, to: to}) {
				return
			}
			i = to
		}
	}
}

// maxToken is the offset by which a token has had letters and digits.
const maxToken = 512

// find returns the span of a token whose prefix ends at end.
func (t *token) find(in *search, end int) (span, bool) {
	from, before := end-len(t.prefix), byte(0)
	if from > 0 {
		before = in.s[from-1]
	}
	n := t.length(in.s[from:], before)
	return span{from, from + n, "token"}, n > 0 && !in.isCoded(from)
}

// minRun is the number of bytes of base64 after which a prefix is a part of it. It is longer than most paths.
const minRun = 256

var codedBytes = bytesOf("+/-_")

// isCoded reports whether what begins at from is within a long run of base64, where any letters occur.
func (t *search) isCoded(from int) bool {
	begin := from
	for begin > 0 && from-begin < minRun && codedBytes[t.s[begin-1]] {
		begin--
	}
	cost(from - begin)
	return from-begin == minRun
}

// length returns the length in bytes of the token at the start of s, or 0. before is the
// preceding byte.
func (t *token) length(s string, before byte) int {
	if !strings.HasPrefix(s, t.prefix) || isWordByte(before) && isWordByte(t.prefix[0]) {
		return 0
	}
	n := len(t.prefix)
	letters, digits := false, false
	for ; n < len(s) && t.chars.has(s[n]); n++ {
		digits = digits || s[n] >= '0' && s[n] <= '9'
		letters = letters || s[n] >= 'A'
		if n == maxToken && !(letters && digits) {
			return 0 // keeps texts of repeated prefixes linear in time
		}
	}
	if n-len(t.prefix) < t.min || !(letters && digits) && !t.strong() {
		return 0
	}
	return n
}

// strong reports whether a prefix identifies a token even without digits after it.
func (t *token) strong() bool { return len(t.prefix) > 5 || strings.ContainsAny(t.prefix, "_$.{") }

func (c charset) has(b byte) bool {
	switch {
	case isWordByte(b):
		return true
	case c == alnum:
		return false
	case b == '_', b == '-':
		return true
	case c == word:
		return false
	case c == dots:
		return b == '.' || b == '~' || b == '+' || b == '='
	}
	return b > ' ' && b != 0x7f && !strings.ContainsRune("\"'`,;<>()[]", rune(b))
}

func isWordByte(b byte) bool { return wordBytes[b] }

var wordBytes = bytesOf("")

// bytesOf returns the set of letters, digits, and other bytes.
func bytesOf(others string) (is [256]bool) {
	for _, b := range []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + others) {
		is[b] = true
	}
	return is
}

// jwt matches RFC 7519's compact form: three parts in base64url, two of them JSON objects, or the five parts of
// an encrypted token (RFC 7516).
var jwt = regexp.MustCompile(`ey[JA][\w-]{5,}\.(ey[JA][\w-]{5,}\.[\w-]*|[\w-]*\.[\w-]{8,}\.[\w-]{8,}\.[\w-]+)`)

const (
	pemBegin  = "-----BEGIN"
	pemBase64 = "LS0tLS1CRUdJTi" // base64 of -----BEGIN, as kubeconfigs hold it
)

// pemEnd matches the start of its end, also in RFC 4716's form.
var pemEnd = regexp.MustCompile(`-----END|---- END`)

// pemPrivate are parts of PEM headers that mark secrets: -----BEGIN (RSA |EC |OPENSSH |ENCRYPTED |…)PRIVATE
// KEY( BLOCK)-----, OpenVPN's shared keys, NATS seeds.
var pemPrivate = []string{"PRIVATE KEY", "OpenVPN Static key", "NKEY SEED"}

func isPrivate(header string) bool {
	return slices.ContainsFunc(pemPrivate, func(s string) bool { return strings.Contains(header, s) })
}

// pemKey returns the span of a PEM private key whose begin's start ends at end, up to its end marker or the end of the
// text.
func (t *search) pemKey(end int) (span, bool) {
	s, from := t.s, end-len(pemBegin)
	head := s[from:min(len(s), from+80)]
	if !isPrivate(head) {
		return span{}, false
	}
	to := len(s)
	if i := pemEnd.FindStringIndex(s[from:]); i != nil {
		if to = from + i[1]; to < len(s) {
			if end := strings.Index(s[to:min(len(s), to+80)], "----"); end >= 0 {
				to += end + len("----")
				to += len(s[to:]) - len(strings.TrimLeft(s[to:], "-"))
			}
		}
	}
	return span{from, to, "private key"}, true
}

// puttyKey returns the span of a key of PuTTY.
func (t *search) puttyKey(end int) (span, bool) { return span{end, len(t.s), "private key"}, true }

// webToken notes that there may be JSON web tokens.
func (t *search) webToken(int) (none span, ok bool) {
	t.jwts = true
	return none, false
}

// encodedKey returns the span of a base64-encoded PEM private key.
func (t *search) encodedKey(end int) (span, bool) {
	s, from := t.s, end-len(pemBase64)
	to := from
	for to < len(s) && (isBase64(s[to]) || s[to] == '=') {
		to++
	}
	for to < len(s) && (s[to] == '\r' || s[to] == '\n') { // it continues on lines that hold nothing else
		begin := to + len(s[to:]) - len(strings.TrimLeft(s[to:], " \t\r\n"))
		end := begin
		for end < len(s) && (isBase64(s[end]) || s[end] == '=') {
			end++
		}
		if end-begin < minCoded/2 && !strings.HasSuffix(s[:end], "=") || end < len(s) && s[end] != '\r' && s[end] != '\n' {
			break
		}
		to = end
	}
	text, _ := decoded(s[from:to])
	if !isPrivate(text) {
		return span{to: to}, false
	}
	return span{from, to, "private key"}, true
}
