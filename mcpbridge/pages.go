package mcpbridge

import (
	"net/http"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// Bounds are what the server lends to pages for people, so that they keep the same bounds as agents.
type Bounds struct {
	// Take counts a call of a person in a bucket, or says when there is room for it.
	Take func(person string, bucket toolset.Bucket) *problem.Problem
	// OpenStream takes a place for a stream of a person, and gives false when there is none. leave gives it back.
	OpenStream func(person string) (leave func(), ok bool)
	// Ready says whether what the pages show is complete.
	Ready func() error
	// Draining is closed when the server begins to drain: streams must end then.
	Draining <-chan struct{}
}

// pages makes the handler of the pages for people.
func (s *Server) pages() (http.Handler, error) {
	streams := newGate(s.opts.MaxPageStreamsPerPerson, s.opts.MaxPageStreams)
	handler, err := s.opts.Board(Bounds{
		Take: func(person string, bucket toolset.Bucket) *problem.Problem {
			// No plate holds a colon, so a person never shares an agent's limits.
			return s.limiters.take("person:"+person, bucket)
		},
		OpenStream: func(person string) (func(), bool) {
			if !streams.enter(person) {
				return nil, false
			}
			return func() { streams.leave(person) }, true
		},
		Ready:    s.toolsetsReady,
		Draining: s.draining,
	})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := s.origins.checkHost(r); p != nil {
			http.Error(w, p.Message, p.Status)
			return
		}
		handler.ServeHTTP(w, r)
	}), nil
}
