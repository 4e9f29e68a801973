package acts

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// Person acts with the rights of its client. It is safe for concurrent use, and cheap to make.
type Person struct {
	// Client carries the person's rights and reads from the API server, not from a cache.
	Client client.Client
	// Name is the person's Kubernetes username. The API server holds messages, decisions and orders to it.
	Name string
	// Clock tells the time.
	Clock clock.PassiveClock
	// Book of a process that follows the rooms' logs anyway. Without one the end of a log is looked for with each message.
	Book *roomlog.Book

	writer string
}

// New makes a Person of a client that carries their rights, and their username.
func New(c client.Client, username string) *Person {
	return &Person{Client: c, Name: username, Clock: clock.RealClock{}, writer: ulid.Make().String()}
}

// Login makes a Person of a configuration, and asks the API server who that is.
func Login(ctx context.Context, cfg *rest.Config) (*Person, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme, FieldValidation: "Strict"})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	me, err := WhoAmI(ctx, c)
	if err != nil {
		return nil, err
	}
	return New(c, me.Username), nil
}

// WhoAmI asks the API server who a client is.
func WhoAmI(ctx context.Context, c client.Client) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, Explain(err, "asking who you are")
	}
	return review.Status.UserInfo, nil
}

// NewScheme makes a scheme with the kinds that people deal with.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("adding kinds to the scheme: %w", err)
		}
	}
	return scheme, nil
}
