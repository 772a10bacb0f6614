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

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file makes one call.

// DefaultLimit is how large an answer may be by default, in bytes: enough for some thousands of pods.
const DefaultLimit = 16 << 20

// caller calls one webhook.
type caller struct {
	hook     Kind
	timeout  time.Duration
	url      *url.URL
	endpoint v1alpha1.EndpointConfig
	vault    vault
	guard    *Guard
	proxy    func(*http.Request) (*url.URL, error)
	wrap     func(http.RoundTripper) http.RoundTripper
	now      func() time.Time
	limit    int64

	mu      sync.Mutex
	current *session
}

// session is the connections for one set of certificates.
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
	// room is the memory that was reserved for the body.
	room int64
}

// forget releases the memory of the body, which is not used any more.
func (s *said) forget() {
	if s.room > 0 {
		rooms.bodies.give(s.room)
	}
	s.body, s.room = nil, 0
}

// call posts body and returns the answer. etag, if there is one, makes it conditional. Errors are a *[Error].
func (c *caller) call(ctx context.Context, body []byte, etag string) (said, error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
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
			failure.Reason, failure.Err = TimedOut, fmt.Errorf("it did not answer within %s", c.timeout)
		}
	}
	failure.Hook, failure.URL = c.hook, shown(c.url)
	return said{}, failure
}

// shown is a URL as errors and metrics may show it. User, password, query and fragment are often secrets.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// bare removes the URL from an error of net/http: the failure has it already, as far as it may be shown.
func bare(err error) error {
	for {
		at, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = at.Err
	}
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
	return c.read(ctx, response, etag != "")
}

// read checks status and size of a response.
func (c *caller) read(ctx context.Context, response *http.Response, conditional bool) (said, error) {
	status := response.StatusCode
	switch {
	case status == http.StatusOK:
		answer, err := c.readBody(ctx, response)
		answer.etag = response.Header.Get("ETag")
		return answer, err
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

// readBody reads an answer. Unless it is short, it waits until there is memory for it, and allocates that at once: a
// buffer that grows while it is read takes three times that.
func (c *caller) readBody(ctx context.Context, response *http.Response) (answer said, err error) {
	defer func() {
		if err != nil {
			answer.forget()
		}
	}()
	tooLarge := &Error{Reason: TooLarge, Err: fmt.Errorf("its answer is larger than %d bytes", c.limit)}
	length := response.ContentLength // -1 if it does not say
	if length > c.limit {
		return answer, tooLarge
	}
	body, broken := io.ReadAll(io.LimitReader(response.Body, min(smallBody, c.limit+1)))
	if broken == nil && int64(len(body)) == smallBody {
		if length < smallBody {
			length = c.limit
		}
		if err := rooms.bodies.take(ctx, length); err != nil {
			return answer, err
		}
		answer.room = length
		whole := bytes.NewBuffer(make([]byte, 0, length+1+bytes.MinRead)) // or it would grow to find the end
		whole.Write(body)
		_, broken = whole.ReadFrom(io.LimitReader(response.Body, c.limit+1-smallBody))
		body = whole.Bytes()
	}
	switch {
	case broken != nil:
		return answer, fmt.Errorf("its answer broke off: %w", broken)
	case int64(len(body)) > c.limit:
		return answer, tooLarge
	}
	answer.body = body
	return answer, nil
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

// session returns connections for these certificates: the existing ones if nothing changed.
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

// closeIdle closes idle connections. Running calls end normally.
func (c *caller) closeIdle() {
	if c.current != nil {
		c.current.wire.CloseIdleConnections()
	}
}
