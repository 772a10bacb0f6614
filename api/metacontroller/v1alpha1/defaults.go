package v1alpha1

import "time"

// This file says what a field that was left out stands for. The CRDs fill in most of these when an object is written;
// an object from before, or one that never went through an API server, has the fields empty.

// Defaults of fields that are left out. They are those of Metacontroller, the history's limit excepted.
const (
	// DefaultRevisionHistoryLimit is how many revisions that no child belongs to are kept for each parent.
	DefaultRevisionHistoryLimit = 10
	// DefaultFieldPath is the one path of a parent that is versioned.
	DefaultFieldPath = "spec"
	// DefaultTimeout is how long a webhook is waited for.
	DefaultTimeout = 10 * time.Second
	// DefaultServicePort and DefaultServiceProtocol are how a Service is spoken to.
	DefaultServicePort     = 80
	DefaultServiceProtocol = "http"
	// DefaultAuthorizationType is the scheme of a token.
	DefaultAuthorizationType = "Bearer"
	// DefaultCAKey is where a Secret or ConfigMap has CA certificates, DefaultCertKey and DefaultPrivateKeyKey where a
	// Secret has a client's certificate and key, DefaultUsernameKey and DefaultPasswordKey where it has the credentials.
	DefaultCAKey         = "ca.crt"
	DefaultCertKey       = "tls.crt"
	DefaultPrivateKeyKey = "tls.key"
	DefaultUsernameKey   = "username"
	DefaultPasswordKey   = "password"
)

// EffectiveFieldPaths returns the versioned fields of a parent: those that are listed, or spec. The receiver may be
// nil.
func (h *RevisionHistory) EffectiveFieldPaths() []string {
	if h == nil || len(h.FieldPaths) == 0 {
		return []string{DefaultFieldPath}
	}
	return h.FieldPaths
}

// EffectiveLimit returns how many revisions that no child belongs to are kept. The receiver may be nil.
func (h *RevisionHistory) EffectiveLimit() int {
	if h == nil || h.Limit == nil {
		return DefaultRevisionHistoryLimit
	}
	return max(0, int(*h.Limit)) // an object that never went through the CRD may say less
}

// EffectiveMethod returns the update method. The receiver may be nil.
func (s *ChildUpdateStrategy) EffectiveMethod() ChildUpdateMethod {
	if s == nil || s.Method == "" {
		return ChildUpdateOnDelete
	}
	return s.Method
}

// EffectiveMethod returns the update method. The receiver may be nil.
func (s *AttachmentUpdateStrategy) EffectiveMethod() ChildUpdateMethod {
	if s == nil || s.Method == "" {
		return ChildUpdateOnDelete
	}
	return s.Method
}

// Rolling reports whether children are updated within a budget and belong to revisions.
func (m ChildUpdateMethod) Rolling() bool {
	return m == ChildUpdateRollingRecreate || m == ChildUpdateRollingInPlace
}

// EffectiveVersion returns the version of the protocol. The receiver may be nil.
func (h *Hook) EffectiveVersion() HookVersion {
	if h == nil || h.Version == nil {
		return HookVersionV1
	}
	return *h.Version
}

// Strict reports whether unknown and duplicate fields in an answer of this hook are an error. The receiver may be nil.
func (h *Hook) Strict() bool {
	if h == nil || h.Webhook == nil || h.Webhook.ResponseUnmarshallMode == nil {
		return h.EffectiveVersion() == HookVersionV2
	}
	return *h.Webhook.ResponseUnmarshallMode == ResponseUnmarshallModeStrict
}

// EffectiveTimeout returns how long the webhook is waited for. What is no duration, or not more than 0, is 10 seconds;
// it is kept as text because one object that cannot be decoded would hide all others from a controller. The receiver
// may be nil.
func (w *Webhook) EffectiveTimeout() time.Duration {
	if w == nil || w.Timeout == nil {
		return DefaultTimeout
	}
	timeout, err := time.ParseDuration(*w.Timeout)
	if err != nil || timeout <= 0 {
		return DefaultTimeout
	}
	return timeout
}
