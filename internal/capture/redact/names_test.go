package redact

import (
	"slices"
	"testing"
)

func TestNameKind(t *testing.T) {
	for _, tc := range []struct {
		why   string
		names []string
		want  bool
	}{
		{"a word, in every way of writing", []string{"PASSWORD", "db.password", "dbPassword", "db-passwd", "DB_PWD", "Secret", "API_TOKEN", "MyTokens", "gcp credentials", "authorization"}, true},
		{"an ending, where nothing parts the words", []string{"PGPASSWORD", "rootpassword", "clientsecret", "accesstoken", "myapikey"}, true},
		{"two words in a row", []string{"API_KEY", "apiKey", "APIKey", "AWS_ACCESS_KEY_ID", "private-key", "CONNECTION_STRING", "ssh_host_key", "SLACK_WEBHOOK_URL"}, true},
		{"only as the last word", []string{"REDIS_AUTH", "ERLANG_COOKIE"}, true},
		{"names of files", []string{".dockerconfigjson", ".netrc", "id_rsa"}, true},
		{"with a number behind", []string{"PASSWORD2", "TOKEN_2", "password-old"}, true},
		{"not as the last word", []string{"AUTH_MODE", "AUTH_SERVER", "auth.conf", "COOKIE_DOMAIN"}, false},
		{"longer words that begin alike", []string{"tokenizer", "SECRETARY", "passwordless_login", "keyboard"}, false},
		{"longer words that end alike", []string{"compass", "bypass"}, false},
		{"descriptive names", []string{"secretName", "TOKEN_URL", "PASSWORD_FILE", "tokenTTL", "password.minLength", "token_expiration_seconds", "SECRET_REF", "API_KEY_HEADER", "private_key_path", "CREDENTIALS_ENABLED"}, false},
		{"a key of another kind", []string{"KEY", "PRIMARY_KEY", "key.type", "PUBLIC_KEY", "id_rsa.pub"}, false},
		{"nothing", []string{"", "--", "A", "LOG_LEVEL", "app.properties", "ca.crt"}, false},
	} {
		for _, name := range tc.names {
			if got := nameKind(name); (got != plainName) != tc.want {
				t.Errorf("%s: nameKind(%q) = %v, words %q", tc.why, name, got, splitWords(name, nil))
			}
		}
	}
}

func TestSplitWords(t *testing.T) {
	for name, want := range map[string][]string{
		"APIKey":        {"api", "key"},
		"dbURLPassword": {"db", "url", "password"},
		"a__b..c":       {"a", "b", "c"},
		"OAuth2Token":   {"o", "auth", "token"},
		"ПарольДБ":      {"пароль", "дб"},
	} {
		if got := splitWords(name, nil); !slices.Equal(got, want) {
			t.Errorf("splitWords(%q) = %q, want %q", name, got, want)
		}
	}
}
