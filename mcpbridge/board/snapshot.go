package board

import (
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"strings"
)

// part is a piece of a page that is replaced as a whole. Its HTML is one element with the id.
type part struct {
	ID   string
	HTML template.HTML
}

// list is an element that holds parts in an order.
type list struct {
	ID    string
	Parts []part
}

// snapshot is what a page shows at a moment, made up so that two of them can be compared piece by piece.
type snapshot struct {
	// shape stands for all that is in no part and no list. When it changes the page's body is sent anew.
	shape string
	parts []part
	lists []list
	// body makes the HTML of all of it.
	body func() (template.HTML, error)
	sum  string
}

// digest stands for what the snapshot shows. It is the same in every replica that shows the same.
func (s *snapshot) digest() string {
	if s.sum != "" {
		return s.sum
	}
	h := sha256.New()
	add := func(text string) {
		_, _ = h.Write([]byte(text))
		_, _ = h.Write([]byte{0})
	}
	add(s.shape)
	for _, p := range s.parts {
		add(string(p.HTML))
	}
	for _, l := range s.lists {
		add(l.ID)
		for _, p := range l.Parts {
			add(string(p.HTML))
		}
	}
	s.sum = hex.EncodeToString(h.Sum(nil)[:8])
	return s.sum
}

// diff gives the HTML that makes a page that shows old show next, empty when nothing differs. Each top element says where
// it goes.
func diff(old, next *snapshot) (string, error) {
	if old == nil || old.shape != next.shape || len(old.parts) != len(next.parts) || len(old.lists) != len(next.lists) {
		body, err := next.body()
		return inside("innerHTML:#page", string(body)), err
	}
	var out strings.Builder
	for i, p := range next.parts {
		if p.HTML != old.parts[i].HTML {
			out.WriteString(replacing(p))
		}
	}
	// What leaves one list may come into another: it must be gone first, so that no id is there twice.
	for i := range next.lists {
		leaving(&out, old.lists[i], next.lists[i])
	}
	for i := range next.lists {
		coming(&out, old.lists[i], next.lists[i])
	}
	return out.String(), nil
}

// inside gives an element whose content goes to a place.
func inside(place, html string) string { return `<div hx-swap-oob="` + place + `">` + html + `</div>` }

// replacing gives a part so that it takes the place of the one with the same id.
func replacing(p part) string {
	html := string(p.HTML)
	i := strings.IndexByte(html, ' ')
	return html[:i] + ` hx-swap-oob="true"` + html[i:]
}

func places(l list) map[string]int {
	at := make(map[string]int, len(l.Parts))
	for i, p := range l.Parts {
		at[p.ID] = i
	}
	return at
}

func leaving(out *strings.Builder, old, next list) {
	stays := places(next)
	for _, p := range old.Parts {
		if _, ok := stays[p.ID]; !ok {
			out.WriteString(`<div id="` + p.ID + `" hx-swap-oob="delete"></div>`)
		}
	}
}

// coming writes what is new or different in a list. One whose parts changed their order is sent whole.
func coming(out *strings.Builder, old, next list) {
	was, last := places(old), -1
	for _, p := range next.Parts {
		if i, ok := was[p.ID]; ok {
			if i < last {
				out.WriteString(inside("innerHTML:#"+next.ID, joined(next.Parts)))
				return
			}
			last = i
		}
	}
	before := ""
	for _, p := range next.Parts {
		i, stays := was[p.ID]
		switch {
		case !stays && before == "":
			out.WriteString(inside("afterbegin:#"+next.ID, string(p.HTML)))
		case !stays:
			out.WriteString(inside("afterend:#"+before, string(p.HTML)))
		case old.Parts[i].HTML != p.HTML:
			out.WriteString(replacing(p))
		}
		before = p.ID
	}
}

func joined(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(string(p.HTML))
	}
	return b.String()
}

// HTML gives the list's parts one after the other.
func (l list) HTML() template.HTML { return template.HTML(joined(l.Parts)) } //nolint:gosec // the parts are escaped
