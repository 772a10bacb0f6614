// Package release makes what a person downloads: archives of the command line, the image of the manager, a manifest for
// krew, and what says where they come from. The same commit gives the same bytes.
//
// What may not come in: anything that asks for the time, for the machine, or for a daemon.
package release
