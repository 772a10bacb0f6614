// Package decorator runs DecoratorControllers (Metacontroller): objects of any kind that somebody else owns get labels,
// annotations, a status and attached objects, as a webhook answers.
//
// A pass is about one object. gather.go reads it, its attachments and what else the hook wants to know; plan.go says what
// follows from the hook's answer, and is pure; act.go writes, attachments by way of package children, which compares them too
// (served.go). settings.go reads a DecoratorController, watch.go says which
// event wakes which object, setup.go wires it all.
//
// An attachment is known by two things together: its ControllerRef is the object, and an annotation names the
// DecoratorController that made it ([Annotation]). Nothing is adopted, so what has one of the two only is somebody else's.
//
// What may not come in: revisions and rollouts (attachments have none), other controllers, and guesses about the shape of
// anybody's objects.
package decorator
