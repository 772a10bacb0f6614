package v1alpha1

// This file holds a hook: where the webhook is and how it is spoken to.

// HookVersion is the version of what a hook is sent and answers.
//
// +kubebuilder:validation:Enum=v1;v2
type HookVersion string

// The versions of the hook protocol. They differ in how children are keyed (v2: always by namespace and name) and in
// what a customize hook may ask for.
const (
	HookVersionV1 HookVersion = "v1"
	HookVersionV2 HookVersion = "v2"
)

// Hook is something to ask.
type Hook struct {
	// Version is the version of what the hook is sent and answers.
	// +optional
	// +kubebuilder:default=v1
	Version *HookVersion `json:"version,omitempty"`
	// Webhook asks over HTTP. It is the only way there is.
	// +optional
	Webhook *Webhook `json:"webhook,omitempty"`
}

// Webhook is the address of a hook, and how it is spoken to.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) || (has(self.service) && has(self.path))",message="a webhook needs an address: a url, or a service and a path"
// +kubebuilder:validation:XValidation:rule="!(has(self.authorization) && has(self.basicAuth))",message="authorization and basicAuth both set the Authorization header; keep one of them"
type Webhook struct {
	// URL is the whole address. If it is set, service and path are ignored.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii().startsWith('http://') || self.lowerAscii().startsWith('https://')",message="the url of a webhook begins with http:// or https://"
	URL *string `json:"url,omitempty"`
	// Timeout is how long to wait for the answer, as Go writes a duration. Anything that is not more than 0 means 10s.
	// +optional
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:default="10s"
	Timeout *string `json:"timeout,omitempty"`
	// Path is the path at the service.
	// +optional
	// +kubebuilder:validation:Pattern=`^(/.*)?$`
	Path *string `json:"path,omitempty"`
	// Service is a Service that is asked at <protocol>://<name>.<namespace>:<port><path>.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`
	// Etag lets the webhook answer that nothing has changed.
	// +optional
	Etag *WebhookEtag `json:"etag,omitempty"`
	// ResponseUnmarshallMode is strict if an answer with unknown or duplicate fields is an error, loose if not. When it is
	// absent it is loose for hooks of version v1 and strict for v2.
	// +optional
	ResponseUnmarshallMode *ResponseUnmarshallMode `json:"responseUnMarshallMode,omitempty"`
	// CABundle holds the certificates that the webhook's own is checked against, in place of the system's.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// ClientTLS is the certificate that is shown to the webhook.
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`
	// Authorization is a token that is sent to the webhook.
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`
	// BasicAuth is a user name and a password that are sent to the webhook.
	// +optional
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
}

// ServiceReference names a Service and how to speak to it.
type ServiceReference struct {
	// Name is the name of the Service.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// Namespace is the namespace of the Service.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Namespace string `json:"namespace"`
	// Port is the port of the Service.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
	// Protocol is http or https.
	// +optional
	// +kubebuilder:default=http
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() in ['http', 'https']",message="the protocol of a service is http or https"
	Protocol *string `json:"protocol,omitempty"`
}

// WebhookEtag lets a webhook answer that nothing has changed (RFC 9110, If-None-Match): the answer before is used
// again.
type WebhookEtag struct {
	// Enabled turns it on.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// CacheTimeoutSeconds is for how many seconds an answer may be used again. When it is absent, for as long as it is
	// kept.
	// +optional
	CacheTimeoutSeconds *int32 `json:"cacheTimeoutSeconds,omitempty"`
	// CacheCleanupSeconds is after how many seconds, at most, answers that are too old are dropped.
	// +optional
	CacheCleanupSeconds *int32 `json:"cacheCleanupSeconds,omitempty"`
}

// ResponseUnmarshallMode says what is done about unknown and duplicate fields of an answer.
//
// +kubebuilder:validation:Enum=loose;strict
type ResponseUnmarshallMode string

// The modes of reading an answer.
const (
	// ResponseUnmarshallModeLoose ignores unknown fields and takes the last of duplicate ones.
	ResponseUnmarshallModeLoose ResponseUnmarshallMode = "loose"
	// ResponseUnmarshallModeStrict takes either for an error.
	ResponseUnmarshallModeStrict ResponseUnmarshallMode = "strict"
)
