package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file makes one call.

// DefaultLimit is how large an answer may be, in bytes, if nobody says. It has room for some thousands of pods.
const DefaultLimit = 16 << 20

// caller calls one webhook.
type caller struct {
	hook     Kind
	webhook  Webhook
	url      *url.URL
	endpoint Endpoint
	vault    vault
	guard    *Guard
	proxy    func(*http.Request) (*url.URL, error)
	wrap     func(http.RoundTripper) http.RoundTripper
	now      func() time.Time
	limit    int64

	mu      sync.Mutex
	current *session
}

// session is the connections that one set of certificates is good for.
type session struct {
	fingerprint [32]byte
	wire        *wire
	client      *http.Client
}

// said is a hook's answer to one call.
type said struct {
	body []byte
	etag string
	// same is true if the answer is the one that the etag of the call stands for.
	same bool
}

// call posts body and returns the answer. etag, if there is one, makes it conditional. Errors are a *[Error].
func (c *caller) call(ctx context.Context, body []byte, etag string) (said, error) {
	within, cancel := context.WithTimeout(ctx, c.webhook.timeout())
	defer cancel()
	answer, err := c.post(within, body, etag)
	if err == nil {
		return answer, nil
	}
	var failure *Error
	if !errors.As(err, &failure) {
		failure = &Error{Reason: Unreachable, Err: bare(err)}
		var no *refusedError
		switch {
		case errors.As(err, &no):
			failure.Reason, failure.Err = AddressRefused, no
		case ctx.Err() == nil && within.Err() != nil:
			failure.Reason, failure.Err = TimedOut, fmt.Errorf("it did not answer within %s", c.webhook.timeout())
		}
	}
	failure.Hook, failure.URL = c.hook, c.url.Redacted()
	return said{}, failure
}

// bare takes the URL off an error of net/http: a failure says it already.
func bare(err error) error {
	if at, ok := errors.AsType[*url.Error](err); ok {
		return at.Err
	}
	return err
}

func (c *caller) post(ctx context.Context, body []byte, etag string) (said, error) {
	credentials, err := c.vault.read(ctx, c.endpoint)
	if err != nil {
		return said{}, &Error{Reason: Misconfigured, Err: err}
	}
	s, err := c.session(credentials)
	if err != nil {
		return said{}, &Error{Reason: Misconfigured, Err: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return said{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "cairn")
	if credentials.authorization != "" {
		request.Header.Set("Authorization", credentials.authorization)
	}
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return said{}, err
	}
	defer response.Body.Close()
	return c.read(response, etag != "")
}

// read judges status and size of a response.
func (c *caller) read(response *http.Response, conditional bool) (said, error) {
	status := response.StatusCode
	switch {
	case status == http.StatusOK:
		body, err := io.ReadAll(io.LimitReader(response.Body, c.limit+1))
		if err != nil {
			return said{}, fmt.Errorf("its answer broke off: %w", err)
		}
		if int64(len(body)) > c.limit {
			return said{}, &Error{Reason: TooLarge, Err: fmt.Errorf("its answer is larger than %d bytes", c.limit)}
		}
		return said{body: body, etag: response.Header.Get("ETag")}, nil
	case conditional && (status == http.StatusNotModified || status == http.StatusPreconditionFailed):
		return said{same: true}, nil
	case status == http.StatusTooManyRequests:
		after := retryAfter(response.Header.Get("Retry-After"), c.now())
		return said{}, &Error{Reason: Busy, Err: &TooManyRequestsError{After: after}}
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		return said{}, &Error{Reason: Redirected, Err: fmt.Errorf("it answered %s, and redirects are not followed", c.status(response))}
	default:
		sample, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		return said{}, &Error{Reason: BadStatus, Err: fmt.Errorf("it answered %s, not 200", c.status(response)), Sample: sample}
	}
}

// status returns number and name of a status. What the hook wrote beside the number is not repeated.
func (c *caller) status(response *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)))
}

// retryAfter reads the header of that name: seconds or a date. What is neither is 0.
func retryAfter(text string, now time.Time) time.Duration {
	const most = 24 * time.Hour
	text = strings.TrimSpace(text)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(max(seconds, 0), int64(most/time.Second))) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		if date, err = time.Parse(time.RFC1123, text); err != nil {
			return 0
		}
	}
	wait := math.Ceil(date.Sub(now).Seconds())
	return time.Duration(min(max(wait, 0), most.Seconds())) * time.Second
}

// session returns connections for these certificates, those that there are if nothing changed.
func (c *caller) session(credentials credentials) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.current.fingerprint == credentials.fingerprint {
		return c.current, nil
	}
	config, err := credentials.tls()
	if err != nil {
		return nil, err
	}
	w := newWire(c.guard, c.proxy, config)
	s := &session{fingerprint: credentials.fingerprint, wire: w, client: &http.Client{
		Transport:     c.wrap(w),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.closeIdle()
	c.current = s
	return s, nil
}

// closeIdle lets go of connections. Calls under way end as they would have.
func (c *caller) closeIdle() {
	if c.current != nil {
		c.current.wire.CloseIdleConnections()
	}
}
