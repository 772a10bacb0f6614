package revision

import "encoding/json"

// This file estimates what a snapshot takes in memory, so that caches can be bounded in bytes.

// Size returns about how many bytes of memory s takes: its data, and what comparing it leaves behind.
func (s *Snapshot) Size() int {
	const (
		compared = 2   // the canonical bytes before and after the normalizer, each about as long as the data
		object   = 256 // whatever the data
	)
	return object + (1+compared)*len(s.data)
}

// SizeOf returns about how many bytes of memory decoded JSON takes, as the Go runtime lays it out on 64 bits. That is
// many times the bytes, because every field is a string, a map entry and an interface of its own.
func SizeOf(v any) int {
	const (
		header   = 16  // of a string, and of an interface
		mapOf    = 48  // an empty map
		perEntry = 40  // key, value and control bytes of a map entry, beside the bytes of the key
		group    = 280 // the smallest table of a map that is not empty
	)
	switch v := v.(type) {
	case map[string]any:
		size := mapOf
		if len(v) > 0 {
			size += max(group, 2*perEntry*len(v)) // a table is never full
		}
		for k, e := range v {
			size += rounded(len(k)) + SizeOf(e)
		}
		return size
	case []any:
		size := 24 + header*len(v)
		for _, e := range v {
			size += SizeOf(e)
		}
		return size
	case string:
		return header + rounded(len(v))
	case json.Number:
		return header + rounded(len(v))
	default: // booleans and null take nothing beside the interface that holds them
		return 0
	}
}

// rounded is what an allocation of n bytes takes.
func rounded(n int) int { return (n + 15) &^ 15 }
