package loop

// OnKill makes the watchdog call a function instead of ending the process.
func (g *Group) OnKill(kill func()) { g.kill = kill }
