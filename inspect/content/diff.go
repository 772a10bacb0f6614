package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/internal/printable"
	"github.com/cairn-dev/cairn/revision"
)

// This file writes content for users to read.

// JSON returns the tree of s as JSON, keys sorted. creationTimestamp: null, which Kubernetes before 1.34 wrote into
// every template, says nothing and is left out.
func JSON(s *revision.Snapshot) ([]byte, error) {
	var raw json.RawMessage
	if err := s.Into(&raw); err != nil {
		return nil, err
	}
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // an integer above 2^53 is shown as it is
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	dropNullTimestamps(tree)
	return json.Marshal(tree)
}

func dropNullTimestamps(v any) {
	switch v := v.(type) {
	case map[string]any:
		if t, ok := v["creationTimestamp"]; ok && t == nil {
			delete(v, "creationTimestamp")
		}
		for _, e := range v {
			dropNullTimestamps(e)
		}
	case []any:
		for _, e := range v {
			dropNullTimestamps(e)
		}
	}
}

// Recorded returns, as JSON, what a revision with that target would hold of an object.
func Recorded(target *revision.Target, object any) ([]byte, error) {
	s, err := target.Snapshot(object)
	if err != nil {
		return nil, err
	}
	return JSON(s)
}

// Unified returns the unified diff of two JSON documents, as YAML, or "" if they are equal.
//
// An undo must not depend on whether its diff can be drawn: what YAML cannot say is shown as JSON.
func Unified(titleA string, a []byte, titleB string, b []byte) (string, error) {
	if bytes.Equal(a, b) {
		return "", nil
	}
	textA, textB, err := Texts(a, b)
	if err != nil {
		return "", fmt.Errorf("write %s and %s: %w", titleA, titleB, err)
	}
	out := diff.Diff(titleA, textA, titleB, textB)
	_, body, _ := bytes.Cut(out, []byte("\n")) // the first line repeats the titles
	return string(body), nil
}

// Texts returns two documents as YAML or, if YAML cannot say one of them, both as JSON.
func Texts(a, b []byte) (textA, textB []byte, err error) {
	textA, errA := yaml.JSONToYAML(printable.Escape(a))
	textB, errB := yaml.JSONToYAML(printable.Escape(b))
	if errA != nil || errB != nil {
		return indented(a, b)
	}
	return textA, textB, nil
}

func indented(a, b []byte) (textA, textB []byte, err error) {
	var outA, outB bytes.Buffer
	err = errors.Join(json.Indent(&outA, a, "", "  "), json.Indent(&outB, b, "", "  "))
	return append(outA.Bytes(), '\n'), append(outB.Bytes(), '\n'), err
}
