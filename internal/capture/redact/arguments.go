package redact

import (
	"slices"
	"strings"
)

// announcedBy reports whether an argument is a credential announced by the previous one.
func announcedBy(before, s string) bool {
	kind := announces(before)
	return kind != plainName && !strings.HasPrefix(s, "-") && says(kind, s)
}

// announces classifies the next argument by a flag or header: --token, Authorization:
func announces(arg string) kindOfName {
	arg = strings.Trim(arg, `"'`)
	if !strings.HasPrefix(arg, "-") && !strings.HasSuffix(arg, ":") || len(arg) > maxName || strings.ContainsAny(arg, "= \t\n") {
		return plainName
	}
	return nameKind(strings.TrimRight(arg, ":"))
}

// userFlags are the flags of curl, wget and others that take user:password.
var userFlags = set(`-u --user --proxy-user -U`)

// isAccount reports whether s is user:password.
func isAccount(s string) bool {
	user, password, found := strings.Cut(strings.Trim(s, `"'`), ":")
	return found && user != "" && !strings.ContainsAny(s, "/ ") && says(credentialName, password) && strings.Trim(password, "0123456789") != ""
}

// program is a program that takes passwords by position or by flags with unrevealing names.
type program struct {
	names    []string
	flag     string // or several, which are apart
	attached bool   // -pPASSWORD; the only form unless apart is set
	apart    bool   // -p PASSWORD
	account  bool   // the flag's value is user:password
	login    bool   // only in a command that logs in to a registry
	verb     string // or several
	nth      int    // among the arguments after the verb that are not flags; 0 for the one after a credential's name
	slash    bool   // user/password@server is an argument
}

var programs = []program{
	{names: []string{"mysql", "mysqladmin", "mysqldump", "mysqlcheck", "mysqlimport", "mysqlshow", "mariadb", "mariadb-admin", "mariadb-dump", "7z"}, flag: "-p", attached: true},
	{names: []string{"redis-cli", "valkey-cli", "keydb-cli"}, flag: "-a", apart: true},
	{names: []string{"sshpass", "mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"}, flag: "-p", attached: true, apart: true},
	{names: []string{"docker", "podman", "nerdctl", "buildah", "skopeo", "oras", "crane", "helm", "az", "oc"}, flag: "-p", apart: true, login: true},
	{names: []string{"ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd", "basic_ldap_auth"}, flag: "-w", attached: true, apart: true},
	{names: []string{"sqlcmd", "bcp", "zip", "unzip", "mosquitto_pub", "mosquitto_sub", "ipmitool"}, flag: "-P", attached: true, apart: true}, //nolint:misspell // a program
	{names: []string{"rabbitmqadmin", "cqlsh"}, flag: "-p", apart: true},
	{names: []string{"http", "https", "xh"}, flag: "-a", apart: true, account: true},
	{names: []string{"curl"}, flag: "-u", attached: true, account: true},
	{names: []string{"elasticsearch-users"}, flag: "-p", apart: true},
	{names: []string{"openssl"}, flag: "-k", apart: true},
	{names: []string{"ssh-keygen"}, flag: "-N", attached: true, apart: true},
	{names: []string{"ssh-keygen"}, flag: "-P", attached: true, apart: true},
	{names: []string{"nmcli"}, verb: "password wifi-sec.psk 802-11-wireless-security.psk", nth: 1},
	{names: []string{"snmpget", "snmpwalk", "snmpset", "snmpbulkwalk", "snmptrap"}, flag: "-c -A -X", apart: true},
	{names: []string{"sqlplus", "expdp", "impdp", "rman", "sqlldr"}, slash: true},
	{names: []string{"redis-cli", "valkey-cli", "keydb-cli"}, verb: "AUTH", nth: 1},
	{names: []string{"vault", "bao"}, verb: "login", nth: 1},
	{names: []string{"mc"}, verb: "set add", nth: 4},
	{names: []string{"rabbitmqctl"}, verb: "add_user change_password", nth: 2},
	{names: []string{"htpasswd", "mosquitto_passwd"}, verb: "-b", nth: 3}, //nolint:misspell // a program
	{names: []string{"htpasswd"}, verb: "-nb", nth: 2},
	{names: []string{"aws", "npm", "yarn", "pnpm"}, verb: "set"},
}

// programsOf maps a name to its programs.
var programsOf = func() map[string][]*program {
	m := map[string][]*program{}
	for i := range programs {
		for _, name := range programs[i].names {
			m[name] = append(m[name], &programs[i])
		}
	}
	return m
}()

// command is the state of reading a command line.
type command struct {
	name   string
	runs   []*program
	at     []int // by program: the number of arguments after the verb; -1 before it
	before string
	flags  bool // only flags count: in texts that are not command lines
}

// start begins a command line if its first word is a program's name.
func (c *command) start(word string, logsIn func() bool) {
	if len(word) > maxName {
		return
	}
	name := baseName(word)
	first := true
	for _, p := range programsOf[name] {
		if p.login && !logsIn() {
			continue
		}
		if first {
			c.end()
			c.name, first = name, false
		}
		c.runs, c.at = append(c.runs, p), append(c.at, -1)
	}
}

// wrappers run the program that their arguments name.
var wrappers = set(`env exec timeout nice nohup sudo doas gosu su-exec tini dumb-init setsid time xargs ionice stdbuf chroot`)

func isWrapper(word string) bool { return wrappers[baseName(word)] }

func baseName(word string) string { return word[strings.LastIndexByte(word, '/')+1:] }

// begin starts the command line of two lists, one after the other, and reads the first one, which may be missing.
func (c *command) begin(t *tree, first, second *node) {
	words := func(n *node) (texts []string) {
		for i := n.child; i != 0; i = t.at(i).next {
			texts = append(texts, t.at(i).text)
		}
		return texts
	}
	if first == nil && (second.child == 0 || t.at(second.child).kind != '"') {
		return
	}
	if first == nil && !isWrapper(t.at(second.child).text) && len(programsOf[baseName(t.at(second.child).text)]) == 0 {
		return // as almost all lists
	}
	var before []string
	if first != nil {
		before = words(first)
	}
	line := append(before[:len(before):len(before)], words(second)...)
	logsIn := func() bool { return slices.Contains(line, "login") }
	for i, word := range line {
		if c.start(word, logsIn); c.name != "" || !isWrapper(line[0]) && i == 0 {
			break
		}
	}
	for _, word := range before {
		c.flagged(word)
	}
}

func (c *command) end() { c.name, c.runs, c.at, c.before = "", c.runs[:0], c.at[:0], "" }

// flagged reports whether the next argument is a password.
func (c *command) flagged(word string) bool {
	flag, value, _ := strings.Cut(word, "=")
	is := userFlags[c.before] && isAccount(word) || userFlags[flag] && isAccount(value)
	for i, p := range c.runs {
		is = p.flagged(c.before, word) || is
		if p.verb != "" && !c.flags {
			is = p.placed(&c.at[i], c.before, word) || is
		}
	}
	c.before = word
	return is
}

// flagged reports whether an argument is a password because of the program's flag.
func (p *program) flagged(before, s string) bool {
	switch {
	case p.slash:
		user, password, found := strings.Cut(strings.Trim(s, `"'`), "/")
		return found && user != "" && !strings.ContainsAny(user, "-@=.") && says(credentialName, password)
	case p.flag == "":
		return false
	case p.apart && before != "" && isOneOf(before, p.flag):
		return says(credentialName, s)
	}
	password, found := strings.CutPrefix(s, p.flag)
	return p.attached && found && says(credentialName, password) && (!p.account || isAccount(password))
}

// placed reports whether an argument is a password because of its position after the program's verb.
func (p *program) placed(at *int, before, s string) bool {
	switch {
	case *at < 0:
		if isOneOf(s, p.verb) || p.verb[0] == '-' && isFlags(s, p.verb) {
			*at = 0
		}
		return false
	case strings.HasPrefix(s, "-"):
		return false
	}
	*at++
	if p.nth > 0 {
		return *at == p.nth && says(credentialName, s)
	}
	return *at == 2 && says(nameKind(before), s)
}

// isOneOf reports whether s is one of some words.
func isOneOf(s, words string) bool { return slices.Contains(strings.Fields(words), s) }

// isFlags reports whether s combines one-letter flags and includes those of the verb: -bc, -cb, -nbB. With an n
// it is another verb than without.
func isFlags(s, verb string) bool {
	return strings.HasPrefix(s, "-") && len(s) < 6 && strings.Contains(s, "b") && strings.Contains(s, "n") == strings.Contains(verb, "n")
}

// program finds passwords that known programs take on a command line: curl -u app:password, mysql -ppassword.
func (t *search) program() {
	if !strings.ContainsAny(t.s, " \t") {
		return
	}
	c := command{flags: !t.command}
	at := 0
	for line := range strings.SplitSeq(t.s, "\n") {
		for word := range strings.FieldsSeq(line) {
			if word == `\` {
				continue
			}
			from := at + strings.Index(t.s[at:], word)
			at = from + len(word)
			if c.before == "" || strings.ContainsAny(c.before[len(c.before)-1:], ";|&(`") {
				c.end()
			}
			start := strings.TrimRight(word, `"'`+"`();&|")
			if i := strings.LastIndexAny(start, "`(;&|"); i >= 0 { // another command: a=$(mysql, true;mysql
				start = start[i+1:]
				c.end()
			}
			if bare := strings.Trim(start, `"'`); c.name != bare {
				c.start(bare, func() bool { return strings.Contains(line, "login") })
			}
			if to := strings.TrimRight(word, ";|&)`"); c.flagged(to) {
				end := from + len(to)
				if isQuote(to[0]) && strings.IndexByte(to[1:], to[0]) < 0 { // it has spaces
					end = inDelimiters(t.s, from, from+1).to
				}
				t.found = append(t.found, span{from, end, "password"})
			}
			c.before = word
		}
		if !strings.HasSuffix(strings.TrimRight(line, " \t\r"), `\`) {
			c.end()
		}
	}
}
