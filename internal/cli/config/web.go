package config

import "github.com/tattler-dev/tattler/internal/cli/setup"

// web writes where the web page would be, and who could see what.
func (r *report) web() {
	w := r.setup.Web
	switch {
	case w.Address == "":
		return
	case w.Authenticates():
		r.line("Web page: %s, viewers see what they may get", w.Address)
	default:
		r.line("Web page: %s, everyone on this machine sees everything", w.Address)
	}
	check := setup.CheckWeb
	if r.alone {
		check = setup.CheckWebAlone
	}
	if err := check(w); err != nil {
		r.wrong(err)
	}
}
