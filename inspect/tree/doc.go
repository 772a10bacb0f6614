// Package tree shows what an object controls, directly and indirectly, or what controls it, by ControllerRefs.
//
// [Below] and [Ancestors] read (treeread.go), and tree.go makes a tree of what was read. Nothing is known of any kind:
// the caller says which there are.
//
// What may not come in: a history, a decision about an object, printing.
package tree
