package fault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file has the hook of CatSets fail in the middle of a rollout, in every way.

// hookFailures are scenarios of their own: in the middle of a rollout, after a pod is lost, the hook answers wrongly.
// No child goes, and the condition says why; when the hook answers well again, all goes on.
func hookFailures(h *hooks) (out []fault.Scenario) {
	for _, f := range hookFaults() {
		out = append(out, fault.Scenario{
			Name:  "catset whose hook " + f.name,
			Once:  true,
			Drive: func(ctx context.Context, e *fault.Env) error { return whileHookFails(ctx, e, h, f) },
			Ended: catsEnded("app:3"),
		})
	}
	old := hookFaults()[0]
	old.only = func(parent *unstructured.Unstructured) bool { return catset.Image(parent) == "app:1" }
	return append(out, fault.Scenario{
		Name: "catset whose hook fails for an old revision", Once: true,
		Drive: func(ctx context.Context, e *fault.Env) error { return whileHookFails(ctx, e, h, old) },
		Ended: catsEnded("app:3"),
	})
}

func whileHookFails(ctx context.Context, e *fault.Env, h *hooks, f hookFault) error {
	if err := createCats(catset.OneByOne, "app:1")(ctx, e); err != nil {
		return err
	}
	if err := editCats(catImage("broken:2"))(ctx, e); err != nil {
		return err
	}
	if err := until("the broken pod", podOf("broken:2"))(ctx, e); err != nil {
		return err
	}
	mend := h.fail(e.Namespace, f)
	defer mend()
	if err := losePod(catName+"-0")(ctx, e); err != nil { // who makes it again has to ask about app:1
		return err
	}
	if err := editCats(catImage("app:3"))(ctx, e); err != nil {
		return err
	}
	if err := e.Until(ctx, "wrong answers, and a condition that says so", func(ctx context.Context) error {
		if n := h.failed(e.Namespace); n < 3 {
			return fmt.Errorf("the hook failed %d times", n)
		}
		if f.silent {
			return nil
		}
		return catFails(f.reason)(ctx, e)
	}); err != nil {
		return err
	}
	return podsAreLeft(catReplicas-1)(ctx, e)
}

// hookFaults are all ways to answer wrongly.
func hookFaults() []hookFault {
	status := func(code int, header ...string) func(http.ResponseWriter, *http.Request, map[string]any) {
		return func(w http.ResponseWriter, _ *http.Request, good map[string]any) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			answerWith(w, good)
		}
	}
	text := func(body string) func(http.ResponseWriter, *http.Request, map[string]any) {
		return func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { _, _ = io.WriteString(w, body) }
	}
	children := func(change func(children []any) []any) func(http.ResponseWriter, *http.Request, map[string]any) {
		return func(w http.ResponseWriter, _ *http.Request, good map[string]any) {
			good["children"] = change(good["children"].([]any))
			answerWith(w, good)
		}
	}
	return []hookFault{
		{name: "answers 500", reason: "HookBadStatus", answer: status(http.StatusInternalServerError)},
		{name: "answers 201", reason: "HookBadStatus", answer: status(http.StatusCreated)},
		{name: "answers 429", silent: true, answer: status(http.StatusTooManyRequests, "Retry-After", "1")},
		{name: "redirects", reason: "HookRedirected", answer: status(http.StatusFound, "Location", "/elsewhere")},
		{name: "does not answer", reason: "HookTimedOut", answer: func(_ http.ResponseWriter, req *http.Request, _ map[string]any) { <-req.Context().Done() }},
		{name: "is cut off", answer: cutOff},
		{name: "does not end", reason: "HookAnswerTooLarge", answer: endless},
		{name: "answers with a page", reason: "HookAnswerMalformed", answer: text("<!DOCTYPE html><html><body>It works!</body></html>")},
		{name: "answers with nothing", answer: text("")},
		{name: "answers {}", reason: "HookAnswerIncomplete", answer: text("{}")},
		{name: "answers with a list", answer: text("[]")},
		{name: "answers with children in a map", answer: text(`{"status":{},"children":{}}`)},
		{name: "answers with children that are none", answer: text(`{"status":{},"children":[null,1,"pod"]}`)},
		{name: "answers with a deep nest", answer: text(`{"children":` + strings.Repeat("[", 100_000))},
		{name: "wants a child of another kind", reason: "HookAnswerContradictory", answer: children(func(c []any) []any {
			return append(c, object("v1", "Secret", map[string]any{"name": "secret", "labels": map[string]any{"app": catName}}))
		})},
		{name: "wants a child twice", reason: "HookAnswerContradictory", answer: children(func(c []any) []any { return append(c, c[0]) })},
		{name: "wants a child in another namespace", reason: "HookAnswerContradictory", answer: children(func(c []any) []any {
			return append(c[1:], object("v1", "Pod", map[string]any{
				"name": catName + "-0", "namespace": "default", "labels": map[string]any{"app": catName},
			}))
		})},
		{name: "wants a child without a name", answer: children(func(c []any) []any {
			return append(c[1:], object("v1", "Pod", map[string]any{"labels": map[string]any{"app": catName}}))
		})},
		{name: "wants a child that its parent does not select", reason: "SelectorMismatch", answer: children(func(c []any) []any {
			return append(c[1:], object("v1", "ConfigMap", map[string]any{"name": "unselected"}))
		})},
	}
}

func object(apiVersion, kind string, metadata map[string]any) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
}

// cutOff ends the connection in the middle of an answer.
func cutOff(w http.ResponseWriter, _ *http.Request, good map[string]any) {
	body, _ := json.Marshal(good) //nolint:errchkjson // it is made of what came as JSON
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body[:len(body)/2])
	panic(http.ErrAbortHandler)
}

// endless sends more than anybody should read.
func endless(w http.ResponseWriter, req *http.Request, _ map[string]any) {
	_, err := io.WriteString(w, `{"children":[],"status":{"text":"`)
	for chunk := strings.Repeat("miau", 1<<14); err == nil && req.Context().Err() == nil; {
		_, err = io.WriteString(w, chunk)
	}
}
