package session

// Retire stops executing for good, because this process must not write any more: nothing is admitted from now on, and it returns when
// nothing is executed here. Commands go on running, and the records still name this instance, so whoever proves it dead takes over.
// Close does nothing afterwards.
func (e *Engine) Retire() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel(ErrDetach)
	e.wg.Wait()
}
