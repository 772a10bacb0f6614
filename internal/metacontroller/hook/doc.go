// Package hook calls the webhooks that say which children a parent should have. It is Metacontroller's hook protocol,
// for the sync, finalize and customize hooks of its CompositeController and DecoratorController in versions v1 and v2:
// a webhook that was written for Metacontroller gets the same bytes and may answer the same.
//
// [Hook] is one hook of one controller. [Hook.Ask] sends it a parent and returns its [Answer]; [Hook.AskRelated]
// returns which other objects it asks for. A question whose content did not change is not sent again. [Form] checks an
// answer: whatever a hook sends, the result is an answer that can be acted on or an [Error] that says what is wrong
// with it, never a guess. An answer without children is a failure, not the wish to have none.
//
// A hook is a program that we do not control, at an address that a user wrote: redirects are not followed, answers are
// bounded in size and time, [Guard] checks the address that is really dialled, and the manager's own identity is never
// sent.
//
// What may not come in: a write to the API server, and what to do with an answer.
package hook
