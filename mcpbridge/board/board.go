package board

import (
	"fmt"
	"html/template"
	"log/slog"
	"net/http"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// maxRemembered bounds the people and the rights that are remembered.
const maxRemembered = 10_000

// Board serves the pages. It is safe for concurrent use.
type Board struct {
	opts      Options
	clock     clock.WithTicker
	log       *slog.Logger
	view      *view.View
	sealer    *sealer
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	templates *template.Template
	assets    *assets
	names     *cache[string]
	rules     *cache[*rules]
	answers   *cache[bool]
	flights   singleflight.Group
	cards     *cards
	metrics   *metrics
	handler   http.Handler
}

// New makes a board.
func New(opts Options) (*Board, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	b := &Board{
		opts: opts, clock: opts.Clock, log: opts.Logger, view: opts.View, scheme: runtime.NewScheme(), mapper: mapper(),
		names: newCache[string](maxRemembered), rules: newCache[*rules](maxRemembered), answers: newCache[bool](maxRemembered),
		cards: newCards(),
	}
	utilruntime.Must(v1alpha1.AddToScheme(b.scheme))
	var err error
	if b.sealer, err = newSealer(opts.Key); err != nil {
		return nil, fmt.Errorf("taking the board's key: %w", err)
	}
	if b.metrics, err = newMetrics(opts.Registry); err != nil {
		return nil, err
	}
	if b.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if b.templates, err = b.loadTemplates(); err != nil {
		return nil, err
	}
	b.handler = b.protect(b.routes())
	return b, nil
}

// mapper knows the kinds that people write, so that no client has to ask for them.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for kind, resources := range map[string][2]string{
		"Room": {"rooms", "room"}, "Task": {"tasks", "task"}, "Agent": {"agents", "agent"}, "Consent": {"consents", "consent"},
		"MessageBatch": {"messagebatches", "messagebatch"}, "Inbox": {"inboxes", "inbox"},
	} {
		m.AddSpecific(v1alpha1.GroupVersion.WithKind(kind), v1alpha1.GroupVersion.WithResource(resources[0]),
			v1alpha1.GroupVersion.WithResource(resources[1]), meta.RESTScopeNamespace)
	}
	return m
}

// ServeHTTP serves a page.
func (b *Board) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.handler.ServeHTTP(w, r) }

func (b *Board) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /static/", b.assets)
	mux.HandleFunc("GET /signin", b.showSignIn)
	mux.HandleFunc("POST /signin", b.signIn)
	mux.HandleFunc("POST /signout", b.act(toolset.BucketWrite, b.signOut))
	for path, h := range map[string]handler{
		"/{$}": b.showRooms, "/live": b.liveRooms,
		"/rooms/{id}": b.showRoom, "/rooms/{id}/live": b.liveRoom, "/rooms/{id}/log": b.olderMessages,
		"/rooms/{id}/newtask": b.newTaskDialog, "/rooms/{id}/tasks": b.listTasks, "/rooms/{id}/consent": b.showConsent,
		"/tasks/{id}": b.showTask, "/tasks/{id}/live": b.liveTask, "/tasks/{id}/menu": b.taskDialog,
		"/rooms/{id}/files": b.showFiles, "/rooms/{id}/files/live": b.liveFiles,
		"/files/{id}": b.showFile, "/files/{id}/live": b.liveFile, "/files/{id}/text": b.moreText, "/files/{id}/download": b.download,
		"/inbox": b.showInbox, "/inbox/live": b.liveInbox, "/agents": b.showAgents, "/agents/live": b.liveAgents,
	} {
		mux.HandleFunc("GET "+path, b.page(h))
	}
	mux.HandleFunc("POST /rooms/{id}/messages", b.act(toolset.BucketSend, b.send))
	for path, h := range map[string]handler{
		"/rooms/{id}/tasks": b.createTask, "/rooms/{id}/state": b.setRoomState, "/rooms/{id}/consent": b.setConsent,
		"/tasks/{id}/assign": b.assign, "/tasks/{id}/priority": b.reprioritise, "/tasks/{id}/accept": b.accept,
		"/tasks/{id}/reject": b.reject, "/tasks/{id}/cancel": b.cancel, "/tasks/{id}/release": b.release,
		"/tasks/{id}/reopen": b.reopen, "/tasks/{id}/archive": b.archive,
	} {
		mux.HandleFunc("POST "+path, b.act(toolset.BucketWrite, h))
	}
	mux.HandleFunc("/", b.page(func(http.ResponseWriter, *http.Request, *person) error { return absent("page") }))
	return mux
}
