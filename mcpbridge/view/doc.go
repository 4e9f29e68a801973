// Package view is what a bridge replica sees of the cluster: every kind of Agent Rooms in memory, indexed the way the tools
// ask for it, fed by watches and by the replica's own writes, so that a caller reads what it wrote.
//
// Objects in the view are shared and must not be changed; whoever wants to write copies first. An object is replaced only
// by a newer resourceVersion, so that a late watch event never undoes an own write.
package view
