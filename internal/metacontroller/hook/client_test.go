package hook_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

func ask(t *testing.T, o hook.Options) (*hook.Answer, error) {
	t.Helper()
	return newHook(t, o).Ask(t.Context(), &hook.Question{Parent: catset("1")})
}

func TestACall(t *testing.T) {
	s := serve(t, always(noChildren))
	if _, err := ask(t, options(s.URL+"/sync?a=b")); err != nil {
		t.Fatal(err)
	}
	got := s.last().header
	got.Del("Content-Length")
	want := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"cairn"}, "Accept-Encoding": {"gzip"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the hook must learn nothing else about us: -want +got\n%s", diff)
	}
}

func TestCallsThatFail(t *testing.T) {
	secret := strings.Repeat("what the host says ", 100)
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, []call)
		reason hook.Reason
		want   string
	}{
		{"created is not OK", status(http.StatusCreated, noChildren), hook.BadStatus, `it answered 201 Created, not 200`},
		{"no content", status(http.StatusNoContent, ""), hook.BadStatus, `it answered 204 No Content, not 200`},
		{"not modified since nothing", status(http.StatusNotModified, ""), hook.BadStatus, `it answered 304 Not Modified, not 200`},
		{"not found", status(http.StatusNotFound, secret), hook.BadStatus, `it answered 404 Not Found, not 200`},
		{"its own fault", status(http.StatusInternalServerError, secret), hook.BadStatus, `it answered 500 Internal Server Error, not 200`},
		{"a status that nobody knows", status(599, secret), hook.BadStatus, `it answered 599, not 200`},
		{
			"elsewhere", func(w http.ResponseWriter, _ []call) {
				w.Header().Set("Location", "http://169.254.169.254/")
				w.WriteHeader(http.StatusTemporaryRedirect)
			}, hook.Redirected, `it answered 307 Temporary Redirect, and redirects are not followed`,
		},
		{"no JSON", always(`<html>`), hook.Malformed, `the answer cannot be read: invalid character '<' looking for beginning of value`},
		{"no children", always(`{}`), hook.Incomplete, `the answer has no field "children": an empty list says that there should be none`},
		{"too much", always(strings.Repeat(" ", 5000)), hook.TooLarge, `its answer is larger than 4096 bytes`},
		{"too much, packed", bomb, hook.TooLarge, `its answer is larger than 4096 bytes`},
		{
			"broken off", func(w http.ResponseWriter, _ []call) {
				w.Header().Set("Content-Length", "100")
				fmt.Fprint(w, noChildren)
			}, hook.Unreachable, `its answer broke off: unexpected EOF`,
		},
		{"gone", func(http.ResponseWriter, []call) { panic(http.ErrAbortHandler) }, hook.Unreachable, `EOF`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer)
			o := options(s.URL + "/x")
			o.Limit = 4096
			answer, err := ask(t, o)
			f := failure(t, err)
			if answer != nil || f.Reason != c.reason || f.Err.Error() != c.want || f.Hook != hook.Sync || f.URL != s.URL+"/x" {
				t.Errorf("got %s: %v", f.Reason, err)
			}
			if s.count() != 1 {
				t.Errorf("%d calls", s.count())
			}
			if len(f.Sample) > 512 || strings.Contains(err.Error(), "what the host says") {
				t.Errorf("the sample is %q", f.Sample)
			}
		})
	}
}

func status(code int, body string) func(http.ResponseWriter, []call) {
	return func(w http.ResponseWriter, _ []call) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// bomb is small on the wire.
func bomb(w http.ResponseWriter, _ []call) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	_ = z.Close()
	if packed.Len() > 4096 {
		panic("this is no test of anything")
	}
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(packed.Bytes())
}

func TestTooManyRequests(t *testing.T) {
	for _, c := range []struct {
		header string
		want   time.Duration
	}{
		{"", 0},
		{"3", 3 * time.Second},
		{" 3 ", 3 * time.Second},
		{"-3", 0},
		{"soon", 0},
		{"99999999999999999999", 24 * time.Hour},
		{"9999999999", 24 * time.Hour},
		{now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{now.Add(1500 * time.Millisecond).Format(http.TimeFormat), time.Second}, // the format has whole seconds
		{now.Add(30 * time.Second).Format(time.RFC1123), 30 * time.Second},
		{now.Add(30 * time.Second).Format(time.RFC850), 30 * time.Second},
		{now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{now.AddDate(300, 0, 0).Format(http.TimeFormat), 24 * time.Hour},
	} {
		s := serve(t, func(w http.ResponseWriter, _ []call) {
			if c.header != "" {
				w.Header().Set("Retry-After", c.header)
			}
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := ask(t, options(s.URL))
		var later *hook.TooManyRequestsError
		if !errors.As(err, &later) || failure(t, err).Reason != hook.Busy {
			t.Fatalf("%q: %v", c.header, err)
		}
		if later.After != c.want {
			t.Errorf("%q: after %s, want %s", c.header, later.After, c.want)
		}
	}
}

func TestAHookThatDoesNotAnswer(t *testing.T) {
	for name, begin := range map[string]bool{"at all": false, "to the end": true} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			s := serve(t, func(w http.ResponseWriter, _ []call) {
				if begin {
					fmt.Fprint(w, `{"children":`)
					_ = http.NewResponseController(w).Flush()
				}
				<-over
			})
			defer close(over)
			o := options(s.URL)
			o.Declared.Webhook.Timeout = new("50ms")
			_, err := ask(t, o)
			if f := failure(t, err); f.Reason != hook.TimedOut || f.Err.Error() != "it did not answer within 50ms" {
				t.Errorf("%s: %v", f.Reason, err)
			}
		})
	}
}

func TestAnAnswerWithoutEnd(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ []call) {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	if _, err := ask(t, options(s.URL)); failure(t, err).Reason != hook.TooLarge {
		t.Error(err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, []call) { cancel(); <-over })
	defer close(over)
	_, err := newHook(t, options(s.URL)).Ask(ctx, &hook.Question{Parent: catset("1")})
	if f := failure(t, err); f.Reason != hook.Unreachable || !errors.Is(err, context.Canceled) {
		t.Errorf("%s: %v", f.Reason, err)
	}
}

func TestNobodyIsThere(t *testing.T) {
	s := serve(t, always(noChildren))
	s.Close()
	_, err := ask(t, options(s.URL))
	if f := failure(t, err); f.Reason != hook.Unreachable || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%s: %v", f.Reason, err)
	}
}

func TestWebhooksWithoutAnAddress(t *testing.T) {
	service := func(name, namespace, protocol, path string) v1alpha1.Webhook {
		return v1alpha1.Webhook{Service: &v1alpha1.ServiceReference{Name: name, Namespace: namespace, Protocol: &protocol}, Path: &path}
	}
	for _, c := range []struct {
		name, want string
		webhook    v1alpha1.Webhook
	}{
		{"nothing", `the webhook has neither a url nor both a service and a path`, v1alpha1.Webhook{}},
		{"no path", `the webhook has neither a url nor both a service and a path`, service("a", "b", "", "")},
		{"no service", `the webhook has neither a url nor both a service and a path`, v1alpha1.Webhook{Path: new("/")}},
		{"no name", `the webhook's service has "" as its name or namespace`, service("", "b", "", "/")},
		{"a host as a namespace", `the webhook's service has "b@evil.example/" as its name or namespace`, service("a", "b@evil.example/", "", "/")},
		{"another protocol", `the webhook's URL ftp://a.b:80/ is not of the form http://host/path or https://host/path`, service("a", "b", "ftp", "/")},
		{"a file", `the webhook's URL file:///etc/passwd is not of the form http://host/path or https://host/path`, v1alpha1.Webhook{URL: new("file:///etc/passwd")}},
		{"a path", `the webhook's URL /sync is not of the form http://host/path or https://host/path`, v1alpha1.Webhook{URL: new("/sync")}},
		{"no URL, with a password", `the webhook's URL cannot be read`, v1alpha1.Webhook{URL: new("http://a:secret@b:x/")}},
		{"a password and a key", `the webhook's URL ftp://b/ is not of the form http://host/path or https://host/path`, v1alpha1.Webhook{URL: new("ftp://a:secret@b/?key=secret#secret")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options("")
			o.Declared.Webhook = &c.webhook
			_, err := hook.New(o)
			if f := failure(t, err); f.Reason != hook.Misconfigured || f.Err.Error() != c.want {
				t.Errorf("got %v", f.Err)
			}
		})
	}
}
