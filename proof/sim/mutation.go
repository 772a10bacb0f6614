package sim

import (
	"encoding/json"
	"hash/fnv"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file finds out whether anybody has changed an object that caches share. client-go's detector does the same for
// real caches, a second late; here every version of every object is compared at the end.

// fingerprint depends on everything in an object.
func fingerprint(o client.Object) uint64 {
	var data []byte
	var err error
	if typed, ok := o.(interface{ Marshal() ([]byte, error) }); ok {
		data, err = typed.Marshal() // sorts its maps
	} else {
		data, err = json.Marshal(o)
	}
	if err != nil {
		data = []byte(err.Error())
	}
	h := fnv.New64a()
	_, _ = h.Write(data) // a hash never fails to write
	return h.Sum64()
}

// unchanged reports every object that is not as it was when it was handed out.
func (w *world) unchanged() {
	for i, e := range w.server.Events() {
		if fingerprint(e.Object) != w.prints[i] {
			w.violationf("%s %s was changed in the caches after it was read at %d", e.Resource.Resource, e.Object.GetName(), e.RV)
		}
	}
	for key, v := range w.views {
		if fingerprint(v.object) != v.print {
			w.violationf("%s %s was changed in the caches after it was read at %s", key.resource.Resource, v.object.GetName(), key.version)
		}
	}
}
