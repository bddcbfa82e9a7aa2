package sink

import (
	"context"
	"time"
)

// Holder is a sink that may take messages in, and tell of many at once, later: what happens within a window,
// a day's digest.
//
//	Acknowledgement  Where Due is not zero after a Send, what that acknowledged is taken in, not told: it is
//	                 lost with the process, and the pump's cursor stays before it until a Flush has told all.
//	                 Where Due is zero, all that was acknowledged is told.
//	Clock            The sink's: it says in Due when it wants to be flushed. The pump sends more until then,
//	                 and flushes at once where that time is past, such as that of a sink that is full.
//	Memory           What is held is bounded, however many messages it stands for.
//	Errors           Flush tells all or, as far as the sink knows, nothing; after an error it still holds
//	                 what it held. A *PermanentError (or a *TooLargeError) says that what it holds will never
//	                 be taken as it is: the pump has it dropped, and sends fewer messages before the next
//	                 Flush, until the one is found that is to blame. Other errors pass: Flush is called
//	                 again, and nothing is sent before it has worked.
//	After close      Flush fails, and nothing is held.
type Holder interface {
	Sink
	// Due is when Flush is to be called; zero where nothing is held.
	Due() time.Time
	// Flush tells of all that is held, whatever Due says, and holds nothing any more.
	Flush(ctx context.Context) error
	// Drop forgets what is held: it is sent again, or was given up.
	Drop()
}
