package sink

import (
	"context"
	"time"
)

// Holder is a sink that may hold messages and send many of them as one later: those of a window, or a day's
// digest.
//
//	Acknowledgement  If Due is not zero after a Send, the acknowledged messages are held, not sent. They are
//	                 lost with the process, so the pump keeps its cursor before them until a Flush has sent
//	                 them. If Due is zero, every acknowledged message has been sent.
//	Clock            The sink decides when it wants to be flushed: Due. The pump sends more messages until
//	                 then. If Due is in the past, as it is for a sink that is full, the pump flushes at once.
//	Memory           A sink holds bounded memory, however many messages it stands for.
//	Errors           Flush sends everything or, as far as the sink knows, nothing; after an error the sink
//	                 still holds its messages. A *PermanentError (or a *TooLargeError) means that the
//	                 receiver will never take them as they are: the pump calls Drop and sends fewer messages
//	                 before the next Flush, until it has found the one to blame. Other errors are temporary:
//	                 the pump calls Flush again, and sends nothing until it succeeds.
//	After close      Flush fails, and nothing is held.
type Holder interface {
	Sink
	// Due returns the time at which to call Flush, or zero if nothing is held.
	Due() time.Time
	// Flush sends everything that is held, even before Due, and then holds nothing.
	Flush(ctx context.Context) error
	// Drop discards what is held: the pump sends it again, or has given it up.
	Drop()
}
