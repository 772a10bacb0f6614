// Package hook talks to the webhooks that say which children a parent should have. It is Metacontroller's hook protocol,
// as the sync, finalize and customize hooks of its CompositeController and DecoratorController speak it in versions v1
// and v2: a webhook that was written for Metacontroller gets the same bytes and may answer the same.
//
// [Hook] is one hook of one controller. [Hook.Ask] tells it about a parent and returns its [Answer]; [Hook.AskRelated]
// returns which other objects it wants to know. A question whose content did not change is not asked again.
// [Form] judges an answer: whatever a hook sends, the result is an answer that can be acted on or a [Error] that says
// what is wrong with it, never a guess. An answer without children is a failure, not the wish to have none.
//
// A hook is somebody else's program at an address that somebody else wrote down: redirects are not followed, answers are
// bounded in size and time, [Guard] looks at the address that is really dialled, and nothing of the manager's own
// identity is ever sent.
//
// What may not come in: a write to the API server, and what to do with an answer.
package hook
