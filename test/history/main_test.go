// Package history_test holds rooms whose log outgrows the cluster to what is promised of them: with an API server, the
// manager as a process that can be killed, the tools of a bridge, and a folder as blob store.
package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/manager"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/testenv"
)

// asManager makes this binary a manager: it holds the folder of the blob store and a file that says how to reach the cluster.
const asManager = "AGENTROOMS_TEST_MANAGER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(asManager); spec != "" {
		if err := runManager(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testenv.Main(m)
}

// managerSpec is what the manager's process is told.
type managerSpec struct {
	Folder string
	Host   string
	TLS    rest.TLSClientConfig
	User   rest.ImpersonationConfig
	Grace  time.Duration
	Rest   time.Duration
}

func runManager(raw string) error {
	var spec managerSpec
	if err := json.Unmarshal([]byte(raw), &spec); err != nil {
		return err
	}
	log.SetLogger(logr.Discard())
	bucket, err := openFolder(spec.Folder)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := manager.Options{MetricsAddress: "0", ProbeAddress: "0", Bucket: bucket}
	o.Controllers.CountsEvery, o.Controllers.ArchiveGrace, o.Controllers.TaskRest = 500*time.Millisecond, spec.Grace, spec.Rest
	cfg := &rest.Config{Host: spec.Host, TLSClientConfig: spec.TLS, Impersonate: spec.User, QPS: -1}
	mgr, err := manager.New(ctx, cfg, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func openFolder(dir string) (*blob.Bucket, error) {
	return fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite, NoTempDir: true})
}

// world is a room with two agents, a manager's process, and the tools of bridges.
type world struct {
	*testing.T
	Gomega
	env    *testenv.Env
	ns     string
	folder string
	room   *v1alpha1.Room
	agents map[string]*v1alpha1.Agent
	// last is the seq of the last message that was written by write.
	last, number int64
	process      *exec.Cmd
	// rest is how long nothing must have happened to an archived task before it moves, as the product has it when zero.
	rest time.Duration
}

func newWorld(t *testing.T, maxCount int32) *world {
	t.Helper()
	env := testenv.Get(t)
	w := &world{T: t, Gomega: NewWithT(t), env: env, ns: env.Namespace(t), folder: t.TempDir(), agents: map[string]*v1alpha1.Agent{}}
	for _, name := range []string{"cc", "dd"} {
		w.agents[name] = testenv.Agent(w.ns, name, "said")
		env.Create(t, w.agents[name])
	}
	w.room = testenv.Room(w.ns, "lab", "cc", "dd")
	w.room.Spec.Retention = &v1alpha1.RoomRetention{Messages: &v1alpha1.MessageRetention{MaxCount: maxCount}}
	env.Create(t, w.room)
	return w
}

// start starts the manager's process, with a grace time for batches.
func (w *world) start(grace time.Duration) {
	w.Helper()
	cfg := w.env.AsServiceAccount("agentrooms-manager")
	raw, err := json.Marshal(managerSpec{
		Folder: w.folder, Host: cfg.Host, TLS: cfg.TLSClientConfig, User: cfg.Impersonate, Grace: grace, Rest: w.rest,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.process = exec.Command(os.Args[0])
	w.process.Env = append(os.Environ(), asManager+"="+string(raw))
	w.process.Stderr = os.Stderr
	if err := w.process.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(w.kill)
}

// kill ends the manager as the kernel does when memory runs out.
func (w *world) kill() {
	if w.process != nil {
		_ = w.process.Process.Signal(syscall.SIGKILL)
		_ = w.process.Wait()
		w.process = nil
	}
}

// bridge is the tools of a replica.
type bridge struct {
	*world
	set      *rooms.Toolset
	tools    map[string]toolset.Tool
	registry *prometheus.Registry
	stop     func()
}

// bridge starts a replica with a bucket, of which its caches may hold a number of bytes.
func (w *world) bridge(bucket archive.Bucket, cache int64) *bridge {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.Cleanup(cancel)
	b := &bridge{world: w, tools: map[string]toolset.Tool{}, registry: prometheus.NewRegistry(), stop: cancel}
	cfg := w.env.AsServiceAccount("agentrooms-bridge")
	cfg.QPS = -1
	t, err := rooms.New(ctx, rooms.Options{Config: cfg, Bucket: bucket, HistoryBytes: cache, Registry: b.registry})
	if err != nil {
		w.Fatal(err)
	}
	b.set = t
	for _, tool := range t.Tools() {
		b.tools[tool.Name] = tool
	}
	w.Eventually(t.Ready, time.Minute, 20*time.Millisecond).Should(Succeed())
	return b
}

func (w *world) bucket() *blob.Bucket {
	w.Helper()
	b, err := openFolder(w.folder)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = b.Close() })
	return b
}

// call calls a tool as an agent, and reads the result as the caller would.
func call[T any](b *bridge, agent, name string, args map[string]any) (T, error) {
	b.Helper()
	var out T
	tool := b.tools[name]
	raw, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	parsed, p := tool.ParseArgs(raw)
	if p != nil {
		b.Fatalf("%s does not take %s: %v", name, raw, p)
	}
	a := b.agents[agent]
	result, err := tool.Handle(b.Context(), &toolset.Caller{Agent: a, Plate: ids.Plate(a), Session: "s1"}, parsed)
	if err != nil {
		return out, err
	}
	out, ok := result.(T)
	if !ok {
		b.Fatalf("%s gives a %T", name, result)
	}
	return out, nil
}

// must calls a tool that must succeed.
func must[T any](b *bridge, agent, name string, args map[string]any) T {
	b.Helper()
	out, err := call[T](b, agent, name, args)
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	return out
}

func unavailable(err error) bool {
	p, ok := problem.As(err)
	return ok && p.Code == problem.Unavailable && p.Retryable
}

func (w *world) id() string { return ids.ID(w.room) }

// reads gives how often a replica has read the blob store.
func (b *bridge) reads() float64 {
	b.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "agentrooms_archive_reads_total" {
			for _, m := range f.GetMetric() {
				if m.GetLabel()[0].GetValue() == "read" {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

// write writes messages in full batches, several at a time, as the bridge does. Each thousandth, from the tenth on, mentions
// cc.
func (w *world) write(count int64) {
	w.Helper()
	cfg := w.env.AsServiceAccount("agentrooms-bridge")
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: w.env.Scheme})
	if err != nil {
		w.Fatal(err)
	}
	var batches []*v1alpha1.MessageBatch
	for end := w.last + count; w.last < end; {
		w.number++
		b := w.batch(min(end-w.last, v1alpha1.MaxBatchMessages))
		batches = append(batches, b)
	}
	const writers = 8
	done := make(chan error, writers)
	for i := range writers {
		go func() {
			for n := i; n < len(batches); n += writers {
				if err := c.Create(context.Background(), batches[n]); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) batch(n int64) *v1alpha1.MessageBatch {
	b := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: ids.BatchName("lab", w.room.UID, w.number)},
		Spec: v1alpha1.MessageBatchSpec{
			RoomRef: v1alpha1.RoomReference{Name: "lab"}, Number: w.number, FirstSeq: w.last + 1, Writer: "test",
		},
	}
	for range n {
		w.last++
		m := v1alpha1.Message{
			Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderAgent, ID: ids.Plate(w.agents["dd"]), Name: "dd"},
			Body:   body(w.last), At: metav1.NowMicro(),
		}
		if w.last%1000 == 10 {
			m.Mentions = []v1alpha1.Mention{{Plate: ids.Plate(w.agents["cc"])}}
		}
		b.Spec.Messages = append(b.Spec.Messages, m)
	}
	return b
}

func body(seq int64) string { return fmt.Sprintf("%d %s", seq, strings.Repeat("x", int(seq%120))) }

// segments counts the files of segments.
func (w *world) segments() int {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(w.folder, "rooms", string(w.room.UID), "messages", "*.jsonl.gz"))
	if err != nil {
		w.Fatal(err)
	}
	return len(files)
}

// held counts the messages that the cluster holds.
func (w *world) held(g Gomega) (messages, batches int64) {
	var list v1alpha1.MessageBatchList
	g.Expect(w.env.Client.List(w.Context(), &list, client.InNamespace(w.ns))).To(Succeed())
	for _, b := range list.Items {
		messages += int64(len(b.Spec.Messages))
	}
	return messages, int64(len(list.Items))
}

// archived gives how far the archive goes.
func (w *world) archived(g Gomega) int64 {
	g.Expect(w.env.Client.Get(w.Context(), client.ObjectKeyFromObject(w.room), w.room)).To(Succeed())
	if w.room.Status.Archive == nil {
		return 0
	}
	return w.room.Status.Archive.ThroughSeq
}
