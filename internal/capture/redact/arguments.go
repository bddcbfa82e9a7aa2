package redact

import (
	"path"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// commandFields hold command lines or variables: what is below them may name a credential in any place.
var commandFields = set(`env envs environment environments envvars extraenv extraenvs extraenvvars variables vars
	args arguments extraargs additionalargs command commands cmd cmds entrypoint script scripts run exec flags
	options opts javaopts javaoptions jvmoptions parameters params properties value default`)

// isCommandField tells these whatever the case of their letters, and without _ and -.
func isCommandField(name string) bool {
	if len(name) < 3 || len(name) > 20 {
		return false
	}
	var space [20]byte
	plain := space[:0]
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			plain = append(plain, c+'a'-'A')
		case c != '_' && c != '-':
			plain = append(plain, c)
		}
	}
	return commandFields[string(plain)]
}

// list hides in a list. Its texts may be a command line, or NAME=value.
func (a *run) list(list []any, how manner) {
	program := programOf(list)
	for i, v := range list {
		s, ok := v.(string)
		if !ok {
			a.path.push(element(v, i))
			list[i] = a.value(v, how)
			a.path.pop()
			continue
		}
		before := ""
		if i > 0 {
			before, _ = list[i-1].(string)
		}
		if argumentHolds(before, s, program) {
			a.path.push(byFlag(before))
			list[i] = a.hide(s)
			a.path.pop()
			continue
		}
		at := step{kind: diff.Index, index: i}
		if flag, _, found := strings.Cut(s, "="); found && len(flag) < maxName && len(strings.Fields(flag)) == 1 {
			at = byFlag(flag)
		}
		a.path.push(at)
		list[i] = a.text(s, asCommand)
		a.path.pop()
	}
}

// byFlag names an argument by its flag, so that another argument before it does not change its marker.
func byFlag(flag string) step { return step{kind: diff.Value, text: flag} }

// argumentHolds tells whether an argument is a credential that the one before it announces.
func argumentHolds(before, s string, program *program) bool {
	if kind := announces(before); kind != plainName && !strings.HasPrefix(s, "-") && says(kind, s) {
		return true
	}
	return program != nil && program.flagged(before, s) || userFlags[before] && isAccount(s)
}

// announces tells whether the next argument is a credential, by its flag or header: --token, Authorization:
func announces(arg string) kindOfName {
	arg = strings.Trim(arg, `"'`)
	if !strings.HasPrefix(arg, "-") && !strings.HasSuffix(arg, ":") || len(arg) > maxName || strings.ContainsAny(arg, "= \t\n") {
		return plainName
	}
	return nameKind(strings.TrimRight(arg, ":"))
}

// userFlags are those of curl, wget and others for user:password.
var userFlags = set(`-u --user --proxy-user -U`)

// isAccount tells user:password.
func isAccount(s string) bool {
	user, password, found := strings.Cut(strings.Trim(s, `"'`), ":")
	return found && user != "" && !strings.ContainsAny(s, "/ ") && says(credentialName, password) && strings.Trim(password, "0123456789") != ""
}

// program is one whose flags for passwords have names that say nothing.
type program struct {
	names    []string
	flag     string
	attached bool // -pPASSWORD
	login    bool // only where it logs in to a registry
}

var programs = []program{
	{names: []string{"mysql", "mysqladmin", "mysqldump", "mysqlcheck", "mysqlimport", "mysqlshow", "mariadb", "mariadb-admin", "mariadb-dump"}, flag: "-p", attached: true},
	{names: []string{"redis-cli", "valkey-cli", "keydb-cli"}, flag: "-a"},
	{names: []string{"sshpass", "mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"}, flag: "-p"},
	{names: []string{"docker", "podman", "nerdctl", "buildah", "skopeo", "oras", "crane", "helm", "az", "oc"}, flag: "-p", login: true},
	{names: []string{"ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd"}, flag: "-w"},
	{names: []string{"sqlcmd", "bcp"}, flag: "-P"},
	{names: []string{"rabbitmqadmin"}, flag: "-p"},
	{names: []string{"cqlsh"}, flag: "-p"},
}

// programOf finds the program that a command line runs.
func programOf(list []any) *program {
	if len(list) == 0 {
		return nil
	}
	first, _ := list[0].(string)
	return findProgram(first, func() bool { return slices.Contains(list, any("login")) })
}

func findProgram(first string, logsIn func() bool) *program {
	if len(first) > maxName {
		return nil
	}
	base := path.Base(first)
	for i := range programs {
		if p := &programs[i]; slices.Contains(p.names, base) && (!p.login || logsIn()) {
			return p
		}
	}
	return nil
}

// flagged tells whether an argument is a password by the program's flag.
func (p *program) flagged(before, s string) bool {
	if p.attached {
		password, found := strings.CutPrefix(s, p.flag)
		return found && says(credentialName, password) && !strings.HasPrefix(s, "--")
	}
	return before == p.flag && says(credentialName, s)
}

// program looks for what flags of known programs give away in a command line: curl -u app:password, mysql -ppassword.
func (t *search) program() {
	if !strings.Contains(t.s, " -") {
		return
	}
	var p *program
	before, at := "", 0
	for line := range strings.SplitSeq(t.s, "\n") {
		for word := range strings.FieldsSeq(line) {
			from := at + strings.Index(t.s[at:], word)
			at = from + len(word)
			if before == "" || strings.ContainsAny(before[len(before)-1:], ";|&(`") {
				p = nil
			}
			if found := findProgram(strings.Trim(word, `"'`+"`();&|"), func() bool { return strings.Contains(line, "login") }); found != nil {
				p = found
			}
			if p != nil && p.flagged(before, word) || userFlags[before] && isAccount(word) {
				t.found = append(t.found, span{from, at, "password"})
			}
			if before = word; t.enough() {
				return
			}
		}
		p, before = nil, ""
	}
}
