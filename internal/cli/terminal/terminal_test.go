package terminal

import "testing"

func TestLine(t *testing.T) {
	for _, tt := range []struct{ why, in, want string }{
		{"a line stays as it is, indentation too", "  pods: no », 日本", "  pods: no », 日本"},
		{"lines become one", "<html>\r\n\t<body>\n\n  a b\n", "<html> <body> a b"},
		{"control sequences are escaped", "a\x1b[2Jb\x07\u202e", `a\x1b[2Jb\a\u202e`},
		{"invalid UTF-8", "a\xffb", "a�b"},
	} {
		if got := Line(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
