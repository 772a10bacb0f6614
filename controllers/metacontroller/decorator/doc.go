// Package decorator runs DecoratorControllers (Metacontroller): objects of any kind that have another owner get labels,
// annotations, a status and attached objects, as a webhook answers.
//
// A pass is about one object. gather.go reads it, its attachments and the related objects for the hook; plan.go says
// what follows from the hook's answer, and is pure; act.go writes, attachments by way of package children, which
// compares them too (served.go). settings.go reads a DecoratorController, watch.go says which event enqueues which
// object, setup.go wires it all.
//
// An attachment is identified by two things together: its ControllerRef is the object, and an annotation names the
// DecoratorController that created it ([Annotation]). Nothing is adopted: an object with only one of the two is not
// ours.
//
// What may not come in: revisions and rollouts (attachments have none), other controllers, and guesses about the shape
// of any object.
package decorator
