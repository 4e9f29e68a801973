package up

import (
	"context"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/datadir"
)

const (
	// audience is whom an agent's token is for: the bridge asks the cluster for tokens minted for it, and the cluster's
	// own API takes none of them.
	audience = "agentrooms"
	// tokenLife is how long a token is good for. It is renewed at half of it, so a file's token has half a day at least.
	tokenLife = 24 * time.Hour
)

// token is a service account token in a file, which is minted anew in time.
type token struct {
	namespace, account string
	// audiences are whom it is for; empty means the cluster's own API.
	audiences []string
	// file is the path in the data folder.
	file    string
	renewAt time.Time
	failing bool
}

// tokenKeeper keeps tokens fresh. It is not safe for concurrent use.
type tokenKeeper struct {
	client client.Client
	dir    *datadir.Dir
	say    func(format string, args ...any)
	now    func() time.Time

	system []*token
	agents map[client.ObjectKey]*token
}

func newTokenKeeper(c client.Client, dir *datadir.Dir, say func(string, ...any)) *tokenKeeper {
	// The wall clock: the monotonic one stands still while a laptop sleeps, and the token's life does not.
	now := func() time.Time { return time.Now().Round(0) }
	return &tokenKeeper{client: c, dir: dir, say: say, now: now, agents: map[client.ObjectKey]*token{}}
}

// add mints a token for one of our own processes and keeps it fresh.
func (k *tokenKeeper) add(ctx context.Context, t *token) error {
	k.system = append(k.system, t)
	return k.mint(ctx, t)
}

// sync mints tokens for agents that have none yet, renews those that are due, and removes those of agents that are gone.
// What cannot be minted now is tried again the next time.
func (k *tokenKeeper) sync(ctx context.Context, agents []v1alpha1.Agent) {
	present := map[client.ObjectKey]bool{}
	for i := range agents {
		agent := &agents[i]
		subject := serviceAccountOf(agent)
		if subject == nil {
			continue
		}
		key := client.ObjectKeyFromObject(agent)
		present[key] = true
		if t := k.agents[key]; t == nil || t.namespace != subject.Namespace || t.account != subject.Name {
			k.agents[key] = &token{namespace: subject.Namespace, account: subject.Name,
				audiences: []string{audience}, file: tokenFile(key)}
		}
	}
	for key, t := range k.agents {
		if !present[key] {
			delete(k.agents, key)
			_ = os.Remove(k.dir.Path(t.file))
		}
	}
	k.renew(ctx)
}

// renew mints every token that is due.
func (k *tokenKeeper) renew(ctx context.Context) {
	for _, t := range k.system {
		k.renewOne(ctx, t)
	}
	for _, t := range k.agents {
		k.renewOne(ctx, t)
	}
}

func (k *tokenKeeper) renewOne(ctx context.Context, t *token) {
	if k.now().Before(t.renewAt) {
		return
	}
	err := k.mint(ctx, t)
	if err != nil && !t.failing && ctx.Err() == nil {
		k.say("%v; trying again", err)
	}
	t.failing = err != nil
}

func (k *tokenKeeper) mint(ctx context.Context, t *token) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.account}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:         t.audiences,
		ExpirationSeconds: ptr.To(int64(tokenLife / time.Second)),
	}}
	minted := k.now()
	if err := k.client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("minting a token for service account %s/%s: %w", t.namespace, t.account, err)
	}
	if err := k.dir.WriteFile(t.file, []byte(request.Status.Token), 0o600); err != nil {
		return err
	}
	// The cluster may have given less than was asked for.
	t.renewAt = minted.Add(request.Status.ExpirationTimestamp.Sub(minted) / 2)
	return nil
}

// fileOf is the path of an agent's token, or "" where there is none.
func (k *tokenKeeper) fileOf(agent *v1alpha1.Agent) string {
	t := k.agents[client.ObjectKeyFromObject(agent)]
	if t == nil || t.renewAt.IsZero() {
		return ""
	}
	return k.dir.Path(t.file)
}

func tokenFile(agent client.ObjectKey) string {
	return "tokens/" + agent.Namespace + "-" + agent.Name + ".token"
}

// serviceAccountOf is the first service account that may act as the agent, or nil.
func serviceAccountOf(agent *v1alpha1.Agent) *v1alpha1.Subject {
	for _, subject := range agent.Spec.Subjects {
		if subject.Kind != v1alpha1.SubjectServiceAccount {
			continue
		}
		if subject.Namespace == "" {
			subject.Namespace = agent.Namespace
		}
		return &subject
	}
	return nil
}
