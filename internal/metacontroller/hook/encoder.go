package hook

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/bounded"
)

// This file keeps encoded objects. The hook of a parent with a hundred children gets all of them on every change of
// one; encoding the others again is most of the work that Metacontroller does.

// Encoder remembers objects as JSON by UID and resourceVersion. It is safe for concurrent use, and one is enough for
// all hooks. Make one with [NewEncoder].
type Encoder struct {
	encoded *bounded.Map[encodedKey, encodedObject]
}

// An object may be read in two versions of its API.
type encodedKey struct {
	uid        types.UID
	apiVersion string
}

type encodedObject struct {
	resourceVersion string
	raw             json.RawMessage
}

// NewEncoder returns an encoder that keeps at most limit bytes of JSON.
func NewEncoder(limit int) *Encoder {
	return &Encoder{encoded: bounded.New[encodedKey, encodedObject](limit)}
}

// encode returns o as JSON, which must not be changed. Objects without UID and resourceVersion are encoded every time.
// Do not call it for a restored parent, whose content is not that of its resourceVersion.
func (e *Encoder) encode(o *unstructured.Unstructured) (json.RawMessage, error) {
	key := encodedKey{o.GetUID(), o.GetAPIVersion()}
	version := o.GetResourceVersion()
	if known, ok := e.encoded.Get(key); ok && known.resourceVersion == version {
		return known.raw, nil
	}
	raw, err := json.Marshal(o.Object)
	if err == nil && key.uid != "" && version != "" {
		e.encoded.Put(key.uid, key, encodedObject{version, raw}, len(raw))
	}
	return raw, err
}

// Forget drops what is kept of a deleted object, in any version of its API. Otherwise that is dropped when the memory
// is full.
func (e *Encoder) Forget(o *unstructured.Unstructured) { e.encoded.Forget(o.GetUID()) }
