package v1alpha1

// This file holds how the host of a webhook is reached: certificates and credentials. All of them but an inline CA are
// in Secrets and ConfigMaps; no secret is ever part of a controller object.

// EndpointConfig says how to reach a host. It counts for every webhook at that host that sets none of the four fields
// itself; nothing is merged.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.authorization) && has(self.basicAuth))",message="authorization and basicAuth both set the Authorization header; keep one of them"
type EndpointConfig struct {
	// Host is a host name, with or without a port, whatever its case. Ports 80 and 443 are the same as none. The host of a
	// Service is <name>.<namespace>.
	Host string `json:"host"`
	// CABundle holds the certificates that the host's own is checked against, in place of the system's.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// ClientTLS is the certificate that is shown to the host.
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`
	// Authorization is a token that is sent to the host.
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`
	// BasicAuth is a user name and a password that are sent to the host.
	// +optional
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
}

// CABundle is where the certificates are that a server's own is checked against, in PEM.
//
// +kubebuilder:validation:XValidation:rule="(has(self.inline) ? 1 : 0) + (has(self.secretRef) ? 1 : 0) + (has(self.configMapRef) ? 1 : 0) == 1",message="a caBundle has exactly one of inline, secretRef and configMapRef"
type CABundle struct {
	// Inline are the certificates themselves.
	// +optional
	Inline *string `json:"inline,omitempty"`
	// SecretRef is a key of a Secret that holds them.
	// +optional
	SecretRef *CABundleReference `json:"secretRef,omitempty"`
	// ConfigMapRef is a key of a ConfigMap that holds them.
	// +optional
	ConfigMapRef *CABundleReference `json:"configMapRef,omitempty"`
}

// CABundleReference is a key of a Secret or a ConfigMap that holds CA certificates.
type CABundleReference struct {
	// Name is the name of the object.
	Name string `json:"name"`
	// Namespace is the namespace of the object.
	Namespace string `json:"namespace"`
	// Key is the key in the object's data.
	// +optional
	// +kubebuilder:default="ca.crt"
	Key *string `json:"key,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Name is the name of the Secret.
	Name string `json:"name"`
	// Namespace is the namespace of the Secret.
	Namespace string `json:"namespace"`
}

// SecretKeyReference is a key of a Secret.
type SecretKeyReference struct {
	SecretReference `json:",inline"`

	// Key is the key in the Secret's data.
	Key string `json:"key"`
}

// ClientTLS is a certificate and its private key, in PEM, in one Secret.
type ClientTLS struct {
	// SecretRef is the Secret.
	SecretRef SecretReference `json:"secretRef"`
	// CertKey is the key of the certificate.
	// +optional
	// +kubebuilder:default="tls.crt"
	CertKey *string `json:"certKey,omitempty"`
	// PrivateKeyKey is the key of the private key.
	// +optional
	// +kubebuilder:default="tls.key"
	PrivateKeyKey *string `json:"privateKeyKey,omitempty"`
}

// Authorization is a token for the Authorization header.
type Authorization struct {
	// Type is the scheme, which is put before the token.
	// +optional
	// +kubebuilder:default=Bearer
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'basic'",message="for type Basic use basicAuth, which takes user name and password"
	Type *string `json:"type,omitempty"`
	// SecretRef is the key of a Secret that holds the token.
	SecretRef SecretKeyReference `json:"secretRef"`
}

// BasicAuth is a user name and a password, in one Secret.
type BasicAuth struct {
	// SecretRef is the Secret.
	SecretRef SecretReference `json:"secretRef"`
	// UsernameKey is the key of the user name, which may not contain a colon.
	// +optional
	// +kubebuilder:default=username
	UsernameKey *string `json:"usernameKey,omitempty"`
	// PasswordKey is the key of the password.
	// +optional
	// +kubebuilder:default=password
	PasswordKey *string `json:"passwordKey,omitempty"`
}
