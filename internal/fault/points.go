package fault

// Points lists every crash point by the name of its commit or outside action. A commit named N has the instants "N:before" and
// "N:after"; an outside action that is not a commit is listed under its full name.
var Points = []string{}
