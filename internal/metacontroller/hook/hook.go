package hook

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file puts the parts together: what to send, whether to call at all, what was answered.

// defaultMemory is what a hook without a shared memory keeps.
const defaultMemory = 4 << 20

// Options make a hook. Controller, Declared and Now are needed; the rest has a default.
type Options struct {
	Controller Controller
	Kind       Kind
	// Declared is the hook, and EndpointConfigs are its controller's settings for hosts. An answer is kept for the
	// revision that it was given for, so that Metacontroller's times to keep it (etag) have no meaning here.
	Declared        *v1alpha1.Hook
	EndpointConfigs []v1alpha1.EndpointConfig
	// Secrets reads what Declared and EndpointConfigs refer to. Nil reads nothing.
	Secrets Secrets
	// Guard says which addresses hooks may have. Nil is its zero value.
	Guard *Guard
	// Proxy says which proxy to use. Nil uses the environment (HTTP_PROXY and so on).
	Proxy func(*http.Request) (*url.URL, error)
	// Limit is how large an answer may be, in bytes. 0 is [DefaultLimit].
	Limit int64
	// Encoder and Memory are shared by hooks. Nil makes small ones.
	Encoder *Encoder
	Memory  *Memory
	// Metrics may be nil.
	Metrics *Metrics
	// Now is the clock that a date in Retry-After is compared with.
	Now func() time.Time
	// Transport, unless it is nil, carries the calls in place of connections of our own: it is for simulations, which have
	// no network. Guard and Proxy mean nothing then.
	Transport http.RoundTripper
}

// Hook is one hook of one controller. It is safe for concurrent use. A change of the controller's spec needs a new one;
// a change of a Secret does not.
type Hook struct {
	controller Controller
	kind       Kind
	version    v1alpha1.HookVersion
	strict     bool
	// conditional says that the hook may answer that its last answer still holds.
	conditional bool
	caller      *caller
	encoder     *Encoder
	memory      *Memory
	open        *gate
	// share is how many bytes the last question had for each object in it. The next one will be similar, so its buffer is
	// allocated at once.
	share atomic.Int64
}

// Asker is a sync or finalize hook: see [Hook.Ask].
type Asker interface {
	Ask(ctx context.Context, q *Question) (*Answer, error)
}

// New returns a hook. The error is a *[Error] with reason [Misconfigured] if the webhook has no address. Nothing is
// called yet, and no Secret is read.
func New(o Options) (*Hook, error) {
	u, err := addressOf(o.Declared.Webhook)
	if err != nil {
		return nil, &Error{Hook: o.Kind, Reason: Misconfigured, Err: err}
	}
	o.setDefaults()
	webhook := o.Declared.Webhook
	h := &Hook{
		controller: o.Controller, kind: o.Kind, version: o.Declared.EffectiveVersion(), strict: o.Declared.Strict(),
		conditional: webhook.Etag != nil && ptr.Deref(webhook.Etag.Enabled, false),
		encoder:     o.Encoder, memory: o.Memory, open: &gate{},
	}
	h.caller = &caller{
		hook: o.Kind, timeout: webhook.EffectiveTimeout(), url: u, endpoint: endpointOf(webhook, u, o.EndpointConfigs),
		vault: vault{o.Secrets}, guard: o.Guard, proxy: o.Proxy, now: o.Now, limit: o.Limit,
		wrap: func(next http.RoundTripper) http.RoundTripper {
			if o.Transport != nil {
				next = o.Transport
			}
			return o.Metrics.wrap(o.Kind, o.Controller, u, h.open, next)
		},
	}
	return h, nil
}

func (o *Options) setDefaults() {
	if o.Guard == nil {
		o.Guard = &Guard{}
	}
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	if o.Encoder == nil {
		o.Encoder = NewEncoder(DefaultLimit)
	}
	if o.Memory == nil {
		o.Memory = NewMemory(defaultMemory)
	}
}

// Ask returns the hook's answer for a parent. It calls the hook unless the last answer for this parent and revision was
// to the very same question. An answer that is equal to the last one is the last one. Errors are a *[Error], unless the
// question cannot be encoded; the last answer stays remembered, and the next Ask calls again.
func (h *Hook) Ask(ctx context.Context, q *Question) (*Answer, error) {
	question, err := h.digest(q)
	if err != nil {
		return nil, err
	}
	form := h.form(q)
	return ask(ctx, h, q, question, h.write, form.Decode)
}

// AskRelated returns which related objects a customize hook asks for. It is called again when generation, labels or
// annotations of the parent change, or when the parent becomes terminating.
func (h *Hook) AskRelated(ctx context.Context, q *Question) ([]Rule, error) {
	question, err := h.digestCustomize(q)
	if err != nil {
		return nil, err
	}
	form := h.form(q)
	return ask(ctx, h, q, question, h.writeCustomize, func(body []byte) ([]Rule, error) {
		return form.DecodeRules(h.version, body)
	})
}

func (h *Hook) form(q *Question) Form {
	return Form{
		Hook: h.kind, Type: h.controller.Type, Strict: h.strict,
		Namespace: q.Parent.GetNamespace(), Kinds: h.controller.Children,
	}
}

// ask answers from memory, or calls. A is the type of the answer.
func ask[A any](
	ctx context.Context, h *Hook, q *Question, question [32]byte,
	write func(*Question) ([]byte, error), decode func([]byte) (A, error),
) (answer A, err error) {
	key := memoryKey{h, q.Parent.GetUID(), q.Revision}
	known, ok := h.memory.answers.Get(key)
	var last A
	if ok { // a hook that is called in two ways forgets the other one
		last, ok = known.answer.(A)
	}
	if ok && known.question == question && !q.Again {
		return last, nil
	}
	body, err := write(q)
	if err != nil {
		return answer, err
	}
	etag := ""
	if ok && h.conditional {
		etag = known.etag
	}
	said, err := h.caller.call(ctx, body, etag)
	if err != nil {
		return answer, err
	}
	defer said.forget()
	if said.same {
		h.memory.answers.Put(key.parent, key, &memory{question, known.etag, known.body, last, known.size}, known.size)
		return last, nil
	}
	text := sha256.Sum256(said.body)
	if ok && text == known.body { // most answers equal the last one, and what was made of that is still valid
		h.memory.answers.Put(key.parent, key, &memory{question, said.etag, text, last, known.size}, known.size)
		return last, nil
	}
	size, tooMuch := measure(said.body)
	if tooMuch != nil {
		return answer, h.complete(tooMuch)
	}
	if answer, err = decoding(ctx, size, func() (A, error) { return decode(said.body) }); err != nil {
		return answer, h.complete(err)
	}
	h.memory.answers.Put(key.parent, key, &memory{question, said.etag, text, answer, int(size)}, int(size))
	return answer, nil
}

// complete adds to a failure which hook it is about.
func (h *Hook) complete(err error) error {
	if f, ok := err.(*Error); ok { //nolint:errorlint // it was made for this call
		f.Hook, f.URL = h.kind, shown(h.caller.url)
	}
	return err
}

// Close ends idle connections and drops the answers. Running calls end normally, and the lookup and handshake of a
// connection are not counted any more.
func (h *Hook) Close() {
	h.open.close()
	h.caller.mu.Lock()
	defer h.caller.mu.Unlock()
	h.caller.closeIdle()
	h.memory.forget(h)
}
