package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
)

const (
	// keepToken is how long an accepted token is not reviewed again, and so how long a revoked one still works.
	keepToken = 10 * time.Second
	// keepRefused is how long a refused token is not reviewed again.
	keepRefused = 5 * time.Second
	// maxTokens is how many tokens are remembered, refused ones apart, so that a flood of wrong tokens does not
	// push out the right ones.
	maxTokens = 4096
	// maxTokenReviews is how many are made at once.
	maxTokenReviews = 8
)

// tokens verifies bearer tokens. It remembers keyed hashes of them, not the tokens.
type tokens struct {
	reviewer  Reviewer
	audiences []string
	secret    [32]byte
	log       *slog.Logger
	asking    chan struct{} // has an element for each review
	failed    complaint

	accepted memo[[32]byte, *identity]
	refused  memo[[32]byte, struct{}]
}

// review returns the identity of a token; nil if it is invalid. An error means that it could not be verified.
func (t *tokens) review(ctx context.Context, token string) (*identity, error) {
	mac := hmac.New(sha256.New, t.secret[:])
	_, _ = mac.Write([]byte(token)) // it never fails
	key := [32]byte(mac.Sum(nil))
	if t.refused.known(key) {
		return nil, nil
	}
	id, err := t.accepted.do(ctx, key, func() (*identity, time.Duration, error) {
		id, err := t.ask(ctx, token)
		if id == nil || err != nil {
			return nil, 0, err
		}
		return id, min(keepToken, time.Until(expiry(token))), nil
	})
	if id == nil && err == nil {
		_, err = t.refused.do(ctx, key, func() (struct{}, time.Duration, error) { return struct{}{}, keepRefused, nil })
	}
	return id, err
}

func (t *tokens) ask(ctx context.Context, token string) (*identity, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	release, err := acquire(ctx, t.asking)
	if err != nil {
		return nil, err
	}
	defer release()
	status, err := t.reviewer.ReviewToken(ctx, authentication.TokenReviewSpec{Token: token, Audiences: t.audiences})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			t.failed.log(t.log, "cannot review tokens: viewers with tokens are refused", err)
		}
		return nil, fmt.Errorf("review token: %w", err)
	}
	if !status.Authenticated || !t.meant(status.Audiences) {
		return nil, nil
	}
	id := &identity{User: status.User.Username, UID: status.User.UID, Groups: status.User.Groups, how: "token"}
	for k, v := range status.User.Extra {
		id.extra(k, v...)
	}
	return id, nil
}

// meant reports whether the server confirmed one of the audiences. A server that knows no audiences confirms none:
// it would accept a token that is for someone else.
func (t *tokens) meant(confirmed []string) bool {
	return len(t.audiences) == 0 || slices.ContainsFunc(t.audiences, func(a string) bool { return slices.Contains(confirmed, a) })
}

// expiry returns when a JSON web token expires, or a time in the far future. Only an accepted token is read:
// nothing else in it is trusted.
func expiry(token string) time.Time {
	never := time.Now().Add(time.Hour)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return never
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1e12 {
		return never
	}
	return time.Unix(int64(claims.Exp), 0)
}

// bearer returns the request's token. Other schemes than Bearer are ignored: a proxy may have used them. Only
// one Authorization header is valid.
func bearer(h http.Header) (token string, present bool, err error) {
	values := h.Values("Authorization")
	if len(values) > 1 {
		return "", true, refuse("more than one Authorization header")
	}
	if len(values) == 0 {
		return "", false, nil
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", false, nil
	}
	token = strings.TrimSpace(token)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", true, refuse("the bearer token is malformed")
	}
	return token, true, nil
}
