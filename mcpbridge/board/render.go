package board

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"time"
)

// layout is the frame of every page.
type layout struct {
	Title  string
	Person string
	CSRF   string
	// At is where the page is: the path of the navigation's entry that leads to it.
	At   string
	Body template.HTML
	// Now is the server's time, by which the page corrects its own clock.
	Now time.Time
}

// notice is a line that appears for a while.
type notice struct {
	Text string
	Bad  bool
	// Reset empties the form that led here.
	Reset bool
}

func (b *Board) loadTemplates() (*template.Template, error) {
	t, err := template.New("board").Funcs(template.FuncMap{
		"asset": b.assets.path,
		"text":  plain,
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"short": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") },
		"bytes": readableSize,
		"link":  func(query string) template.URL { return template.URL(query) }, //nolint:gosec // url.Values encoded it
		"query": func(text string) string { return template.URLQueryEscaper(text) },
	}).ParseFS(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("reading the templates: %w", err)
	}
	return t, nil
}

// fragment executes a template.
func (b *Board) fragment(name string, data any) (template.HTML, error) {
	var out bytes.Buffer
	if err := b.templates.ExecuteTemplate(&out, name, data); err != nil {
		return "", fmt.Errorf("filling the template %s: %w", name, err)
	}
	return template.HTML(bytes.TrimSpace(out.Bytes())), nil //nolint:gosec // the template has escaped what others wrote
}

// render answers with a fragment.
func (b *Board) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	html, err := b.fragment(name, data)
	if err != nil {
		b.log.ErrorContext(r.Context(), "a fragment could not be made", "error", err.Error())
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	b.write(w, status, html)
}

func (b *Board) write(w http.ResponseWriter, status int, html template.HTML) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(html)) // the browser may have left
}

// renderPage answers with a page. The person is nil when nobody is signed in.
func (b *Board) renderPage(w http.ResponseWriter, r *http.Request, p *person, status int, name, title string, data any) {
	body, err := b.fragment(name, data)
	if err != nil {
		b.log.ErrorContext(r.Context(), "a page could not be made", "error", err.Error())
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	frame := layout{Title: title, Body: body, At: r.URL.Path, Now: b.clock.Now()}
	if p != nil {
		frame.Person, frame.CSRF = p.name, b.csrf(p)
	}
	b.render(w, r, status, "layout", frame)
}

// done answers to what a person did: with a notice to htmx, by leading back to where they were otherwise.
func (b *Board) done(w http.ResponseWriter, r *http.Request, back, text string) error {
	if !isHTMX(r) {
		http.Redirect(w, r, back, http.StatusSeeOther)
		return nil
	}
	b.render(w, r, http.StatusOK, "notice", notice{Text: text})
	return nil
}
