package board

import (
	"errors"
	"net/http"
	"strings"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/signin"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// signInView is the page to sign in at.
type signInView struct {
	Problem string
	// Codes says whether one-time codes are taken here.
	Codes bool
}

func (b *Board) showSignIn(w http.ResponseWriter, r *http.Request) {
	if p, err := b.identify(r); err == nil && p != nil {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	b.signInPage(w, r, http.StatusOK, "")
}

func (b *Board) signInPage(w http.ResponseWriter, r *http.Request, status int, text string) {
	b.renderPage(w, r, nil, status, "signin", "Sign in", signInView{Problem: text, Codes: b.opts.CodesDir != ""})
}

// signIn begins a session for a token that somebody pasted, or for the one that a one-time code stands for.
func (b *Board) signIn(w http.ResponseWriter, r *http.Request) {
	err := b.readForm(w, r)
	if err == nil {
		err = b.trySignIn(w, r)
	}
	if err == nil {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if errors.Is(err, errSignedOut) {
		b.signInPage(w, r, http.StatusUnauthorized, "The cluster does not know this token, or it has ended. "+
			"An agent's token, made for the audience agentrooms, is none for people: leave --audience out.")
		return
	}
	seen := b.judge(r.Context(), err)
	b.signInPage(w, r, seen.Status, sentence(seen))
}

func (b *Board) trySignIn(w http.ResponseWriter, r *http.Request) error {
	if limit := b.opts.Bounds.Take("signing in from "+remote(r), toolset.BucketWrite); limit != nil {
		return limit
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	if code := r.PostForm.Get("code"); code != "" && b.opts.CodesDir != "" {
		var err error
		token, err = signin.Take(b.opts.CodesDir, code, b.clock.Now())
		if errors.Is(err, signin.ErrNoCode) {
			return problem.New(problem.IdentityRequired, "the link was used already, or is too old: `rooms signin` makes another")
		} else if err != nil {
			return err
		}
	}
	switch {
	case token == "":
		return problem.New(problem.Validation, "paste a token")
	case len(token) > maxToken || strings.ContainsAny(token, " \t\r\n"):
		return problem.New(problem.Validation, "this is no token that can be used here: it must have at most %d characters and no "+
			"space inside", maxToken)
	}
	if _, err := b.whoIs(r.Context(), token); err != nil {
		return err
	}
	return b.begin(w, r, token)
}

func (b *Board) signOut(w http.ResponseWriter, r *http.Request, _ *person) error {
	b.end(w, r)
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
	return nil
}
