package apply

// This file is about what the API server makes of a desired child. It fills in defaults (fieldRef.apiVersion, the
// default tolerations of every pod), drops what is empty (value: ""), and writes quantities its own way. Where the
// hook's answer replaces a list or names such a field, a comparison with what is observed then finds a difference that
// no write can remove: Metacontroller recreates such a pod for ever (metacontroller#863, #443, #281).
//
// Only the API server knows its defaults. So ask it, and compare what it made of the desired child with the observed
// child. The caller gets it from
//
//   - the response to its own create of that very desired child, which costs nothing, or
//   - after a restart, a dry-run create of the desired child under a name that is free,
//
// and needs it only when [Result.Reapplied] and [Result.Content] are both true: a new template needs no question. What
// is remembered is valid for this content of the desired child, see [Served].

// Served is what the API server makes of a desired child: the object that it answered to a create of it, or to a dry
// run of one. Only the fields that the desired child names are ever looked at.
type Served map[string]any

// project returns desired with the values that served has in the same places. A field that the server dropped is
// removed from it, and a list without keys is the server's.
func project(desired, served map[string]any) map[string]any {
	out := object(projectValue(desired, served))
	metadata := shallow(object(out["metadata"]), 3)
	for _, key := range [...]string{"name", "generateName", "namespace"} {
		// A dry run asked under another name.
		if value, there := object(desired["metadata"])[key]; there {
			metadata[key] = value
		}
	}
	out["metadata"] = metadata
	return out
}

func projectValue(desired, served any) any {
	switch d := desired.(type) {
	case map[string]any:
		s, ok := served.(map[string]any)
		if !ok {
			return served
		}
		out := make(map[string]any, len(d))
		for key, want := range d {
			if value, there := s[key]; there {
				out[key] = projectValue(want, value)
			}
		}
		return out
	case []any:
		s, ok := served.([]any)
		if !ok {
			return served
		}
		return projectList(d, s)
	default:
		return served
	}
}

// projectList looks at items that have keys one by one, so that items which admission added are not desired, and are
// left alone like those of another writer. A list without keys can only be compared as a whole.
func projectList(desired, served []any) []any {
	key := listKey(desired, served)
	if key == "" {
		return served
	}
	values := byKey(served, key)
	out := make([]any, 0, len(desired))
	for _, want := range desired {
		if value, there := values[keyOf(want, key)]; there {
			out = append(out, projectValue(want, value))
		}
	}
	return out
}
