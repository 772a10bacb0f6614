package model_test

// This file translates requests from the model's UIDs and resource versions into those of the real API server.

import (
	"bytes"
	"encoding/json"
	"strings"
)

// translate brings a body into the real server's UIDs and resource versions.
func (q *sequence) translate(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return body, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var content any
	if err := decoder.Decode(&content); err != nil {
		return nil, err
	}
	walkJSON(content, func(name, value string) string {
		translated := ""
		switch name {
		case "uid", "/metadata/uid":
			translated = q.realUID[value]
		case "resourceVersion", "/metadata/resourceVersion":
			translated = q.realRV[value]
		}
		if translated == "" {
			return value
		}
		return translated
	})
	return json.Marshal(content)
}

// walkJSON changes the strings in a value. The value of an operation of a JSON patch goes by the operation's path.
func walkJSON(value any, change func(name, value string) string) {
	switch v := value.(type) {
	case m:
		for name, inner := range v {
			text, ok := inner.(string)
			if !ok {
				walkJSON(inner, change)
				continue
			}
			if path, isOperation := v["path"].(string); isOperation && name == "value" {
				name = path
			}
			if name == "value" {
				continue
			}
			if _, isOperation := v["op"]; isOperation && strings.HasPrefix(name, "/") {
				v["value"] = change(name, text)
				continue
			}
			v[name] = change(name, text)
		}
	case []any:
		for _, inner := range v {
			walkJSON(inner, change)
		}
	}
}
