package mcpbridge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// DefaultAudience is the audience that tokens for the bridge are made for.
const DefaultAudience = "agentrooms"

// maxTokenBytes bounds a bearer token. A service account's has about 1 KB.
const maxTokenBytes = 16 << 10

// ErrUnauthenticated says that a token is nobody's.
var ErrUnauthenticated = errors.New("the token is not valid")

// Authenticator says whose a token is.
type Authenticator interface {
	// Authenticate gives the Kubernetes username behind a token. It gives ErrUnauthenticated for a token that is nobody's;
	// any other error means that it could not be found out.
	Authenticate(ctx context.Context, token string) (username string, err error)
}

// TokenReviewer authenticates tokens through the API server's TokenReview.
type TokenReviewer struct {
	// Reviews is the API.
	Reviews authenticationclient.TokenReviewInterface
	// Audience that a token must be made for.
	Audience string
}

// Authenticate asks the API server whose a token is.
func (r *TokenReviewer) Authenticate(ctx context.Context, token string) (string, error) {
	review := &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{r.Audience}},
	}
	review, err := r.Reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("reviewing a token: %w", err)
	}
	// An API server that knows nothing of audiences answers without any: the token may then be for anybody.
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, r.Audience) {
		return "", ErrUnauthenticated
	}
	if review.Status.User.Username == "" {
		return "", ErrUnauthenticated
	}
	return review.Status.User.Username, nil
}

// bearer takes the token out of a request's header.
func bearer(h http.Header) (token string, ok bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxTokenBytes {
		return "", false
	}
	return token, true
}

// expiry reads when a token ends by its own account. Only tokens that the API server accepted are asked, so the signature
// need not be checked here. It is zero for a token that does not say.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}
