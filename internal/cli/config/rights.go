package config

import (
	"errors"
	"strings"
)

// rights warns of what is missing, once for all kinds that lack the same. Where nothing at all may be watched, that is
// a problem.
func (r *report) rights(f findings) {
	may := len(f.kinds) == 0 // a glob waits
	var texts []string
	lacking := map[string][]string{}
	for _, k := range f.kinds {
		may = may || k.may
		for _, l := range k.lacks {
			if lacking[l.Text()] == nil {
				texts = append(texts, l.Text())
			}
			lacking[l.Text()] = append(lacking[l.Text()], l.Subject())
		}
	}
	for _, text := range texts {
		names := lacking[text]
		if len(names) > 1 && strings.HasPrefix(text, "may not") {
			text += "; tattler rbac prints the roles to grant"
		}
		r.warn("%s: %s", strings.Join(names, ", "), text)
	}
	for _, l := range f.other {
		r.warn("%s: %s: %s", strings.TrimSuffix(l.Resource+"/"+l.Name, "/"), l.Text(), l.Without)
	}
	if !may {
		r.wrong(errors.New("nothing of this may be watched; tattler rbac prints the rights that are needed"))
	}
}
