package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/web/auth"
	"github.com/tattler-dev/tattler/internal/when"
)

// Orders are given in two steps: a page says what an order does, and its form gives it by POST. Package auth refuses a POST
// that another site's page sent.

// orderPath is the only path that takes a POST.
const orderPath = "/status/order"

// orderTime bounds an order, and presentTime reading the sink's state after one that failed. The server ends an answer after 30
// seconds.
const (
	orderTime   = 25 * time.Second
	presentTime = 3 * time.Second
)

// orderError is an order that was not carried out, or not completely. The text says why, and whether it may have been.
type orderError struct {
	code int
	text string
	// sink is that of an order that was given; empty otherwise. The page shows its state.
	sink string
}

func (e *orderError) Error() string { return e.text }

type orderPage struct {
	head
	Question, Button string
	// Text says what the order does.
	Text []string
	// At, if not zero, is the moment from which changes are replayed, or until which dead letters are meant.
	At     time.Time
	AtText string
	// Fields are the form's.
	Fields []input
	Cancel string
}

// input is a hidden value of a form.
type input struct{ Name, Value string }

// target returns the sink that an order names, if the viewer may give orders.
func (p *Page) target(ctx context.Context, name string) (*control.Sink, *sinkadmin.State, error) {
	switch may, err := auth.From(ctx).MayDo(ctx, auth.ManageSinks); {
	case err != nil:
		return nil, nil, err
	case !may:
		return nil, nil, &forbiddenError{"You may not control sinks: this needs " + auth.ManageSinks.Verb + " on " + auth.ManageSinks.URL + "."}
	}
	s, err := p.state(ctx)
	if err != nil {
		return nil, nil, err
	}
	if s.Idle != nil {
		return nil, nil, notGiven(s.Idle)
	}
	found, _, err := s.Find(name)
	if err != nil {
		return nil, nil, &orderError{code: http.StatusNotFound, text: sentence(err)}
	}
	return found, &s, nil
}

// confirm serves the page that asks to confirm an order. It changes nothing.
func (p *Page) confirm(w http.ResponseWriter, r *http.Request) error {
	ctx, query := r.Context(), r.URL.Query()
	sink, state, err := p.target(ctx, query.Get("sink"))
	if err != nil {
		return err
	}
	do := sinkadmin.Verb(query.Get("do"))
	page := orderPage{head: p.head(r, "Sink "+sink.Name), Cancel: sinkURL(sink.Name), Fields: []input{{"do", string(do)}, {"sink", sink.Name}}}
	page.Section = "status"
	if err := foreign(do, query); err != nil {
		return err
	}
	switch do {
	case sinkadmin.Pause:
		page.ask("Pause", "Pause sink "+sink.Name+"?", "New changes wait in the journal, as long as it keeps them. The sink stays paused over restarts, until it is resumed.")
	case sinkadmin.Resume:
		page.ask("Resume", "Resume sink "+sink.Name+"?", "The sink continues from where it stopped: "+count(sink.Behind, "change")+" to deliver. If it failed, it is retried at once.")
	case sinkadmin.Remove:
		page.ask("Remove", "Remove sink "+sink.Name+"?", "The journal forgets its position and its "+count(sink.Dead, "dead letter")+". If the sink is configured again, it starts anew.")
	case sinkadmin.Skip:
		err = p.askSkip(ctx, &page, sink, query.Get("id"))
	case sinkadmin.Replay:
		err = p.askReplay(ctx, &page, sink, state, query)
	case sinkadmin.Send, sinkadmin.Drop:
		err = p.askDead(ctx, &page, sink, do, query.Get("id"))
	}
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "order.html", page)
}

// orderInputs are the inputs of each order besides do and sink, of which an order has one at most. all is an input of the
// question only, and until one of the answer.
var orderInputs = map[sinkadmin.Verb][]string{
	sinkadmin.Pause: nil, sinkadmin.Resume: nil, sinkadmin.Remove: nil, sinkadmin.Skip: {"id"}, sinkadmin.Replay: {"since", "position", "all"},
	sinkadmin.Send: {"id", "until"}, sinkadmin.Drop: {"id", "until"},
}

// foreign returns an error for an input that an order would ignore. Those of a form that are empty count as left out.
func foreign(do sinkadmin.Verb, inputs url.Values) error {
	known, ok := orderInputs[do]
	if !ok {
		return mistake("there is no order do=%s", do)
	}
	var given []string
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		switch {
		case len(inputs[name]) > 1:
			return mistake("%s: it has %d values, but only one is possible", name, len(inputs[name]))
		case name == "do" || name == "sink" || inputs.Get(name) == "":
		case !slices.Contains(known, name):
			return mistake("%s: the order do=%s does not have it", name, do)
		default:
			given = append(given, name)
		}
	}
	if len(given) > 1 {
		return mistake("%s: give only one of them", strings.Join(given, " and "))
	}
	return nil
}

func (o *orderPage) ask(button, question string, text ...string) {
	o.Button, o.Question, o.Text = button, question, text
}

func (o *orderPage) add(name, value string) { o.Fields = append(o.Fields, input{name, value}) }

func (p *Page) askSkip(ctx context.Context, page *orderPage, sink *control.Sink, id string) error {
	if sink.Stuck == nil || id != sink.Stuck.ID {
		return &orderError{code: http.StatusConflict, text: "This change does not block sink " + sink.Name + ", or no longer."}
	}
	row, err := p.sinkRow(ctx, *sink, false)
	if err != nil {
		return err
	}
	about := "Change " + id
	if !row.Hidden {
		about += " (" + sink.Stuck.Subject + ")"
	}
	page.ask("Skip", "Skip the change that blocks sink "+sink.Name+"?",
		about+" becomes a dead letter, which can be sent again. The sink continues with the next change.", "It failed "+count(int64(sink.Stuck.Attempts), "time")+": "+sink.Error)
	page.add("id", id)
	return nil
}

// askReplay asks to confirm a replay: from a time, after a position, or of everything.
func (p *Page) askReplay(ctx context.Context, page *orderPage, sink *control.Sink, state *sinkadmin.State, query url.Values) error {
	since, position, all := strings.TrimSpace(query.Get("since")), strings.TrimSpace(query.Get("position")), query.Get("all") != ""
	var from int64
	switch {
	case all:
		page.add("position", "0")
	case position != "":
		n, err := strconv.ParseInt(position, 10, 64)
		if err != nil || n < 0 {
			return mistake("%q is not a position: write a sequence number, such as %d", position, sink.Cursor)
		}
		from = n
		page.add("position", position)
	case since != "":
		at, err := when.Parse(since, p.o.Now().UTC())
		if err != nil {
			return mistake("%s; times are in UTC", err)
		}
		if from, _, err = p.o.Console.After(ctx, at); err != nil {
			return err
		}
		page.At, page.AtText = at, "Changes observed since"
		page.add("since", at.UTC().Format(time.RFC3339Nano))
	default:
		return mistake("say where the replay begins: a time, a position, or everything")
	}
	from = max(from, state.Journal.First-1)
	again := max(0, sink.Cursor-from)
	page.ask("Replay", "Deliver changes to sink "+sink.Name+" again?",
		fmt.Sprintf("It receives up to %s again, under the same ids, and then the %s that it has not received yet. Quiet changes, those that its filter rejects and, without snapshots: true, snapshots are not sent.",
			count(again, "change"), count(sink.Behind, "change")))
	if sink.State == "paused" {
		page.Text = append(page.Text, "It is paused: the delivery begins once it is resumed.")
	}
	return nil
}

// askDead asks to confirm what happens with one dead letter or, without an id, with all.
func (p *Page) askDead(ctx context.Context, page *orderPage, sink *control.Sink, do sinkadmin.Verb, id string) error {
	what := "the dead letter " + id
	if id != "" {
		l, err := p.o.Console.Letter(ctx, sink.Name, id)
		if err != nil {
			return notGiven(err)
		}
		row, err := p.letterRow(ctx, sink.Name, l)
		if err != nil {
			return err
		}
		page.Text = []string{"The change: " + row.What() + ".", "It was refused with: " + l.Reason}
		page.add("id", id)
	} else {
		all, newest, err := p.o.Console.Aside(ctx, sink.Name, time.Time{})
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return &orderError{code: http.StatusConflict, text: "Sink " + sink.Name + " has no dead letters, or no longer."}
		}
		what = count(int64(len(all)), "dead letter")
		page.At, page.AtText = newest, "The newest of them was set aside at"
		page.add("until", newest.UTC().Format(time.RFC3339Nano))
	}
	text := page.Text
	if do == sinkadmin.Send {
		page.ask("Send again", "Send "+what+" to sink "+sink.Name+" again?", append(text, "What the receiver refuses again stays a dead letter.")...)
	} else {
		end := "The sink never receives the change. It stays in the journal and on the timeline."
		if id == "" {
			end = "The sink never receives these changes. They stay in the journal and on the timeline."
		}
		page.ask("Drop", "Drop "+what+" of sink "+sink.Name+"?", append(text, end)...)
	}
	return nil
}

// give gives an order. The answer leads to the sink's page, which says what was done.
func (p *Page) give(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), orderTime)
	defer cancel()
	if err := r.ParseForm(); err != nil {
		return mistake("the form cannot be read: %v", err)
	}
	viewer := auth.From(ctx)
	name := r.PostForm.Get("sink")
	viewer.Note("order", r.PostForm.Get("do"), "sink", name)
	if _, _, err := p.target(ctx, name); err != nil {
		return err
	}
	order, err := p.order(ctx, name, r.PostForm)
	if err != nil {
		return notGiven(err)
	}
	result, err := p.o.Console.Give(control.By(ctx, viewer.String()+", on the web page"), order)
	d := done{Text: result.Text}
	var again *sinkadmin.RefusedError
	switch {
	case errors.As(err, &again):
		d.Failed = true
		d.Text = append(d.Text, count(int64(again.Refused), "dead letter")+" refused again: the list says why.")
	case err != nil:
		viewer.Note("error", err)
		problem := failed(err)
		if problem.sink = name; len(result.Text) > 0 { // a part was done
			problem.text = strings.Join(result.Text, ". ") + ". " + problem.text
		}
		return problem
	}
	http.Redirect(w, r, sinkURL(name)+"&done="+p.results.put(viewer.String(), d), http.StatusSeeOther)
	return nil
}

// order makes the order of a form.
func (p *Page) order(ctx context.Context, sink string, form url.Values) (o sinkadmin.Order, err error) {
	o = sinkadmin.Order{Do: sinkadmin.Verb(form.Get("do")), Sink: sink, ID: form.Get("id")}
	if err := foreign(o.Do, form); err != nil { // it must not do more than the form says, nor something else
		return o, err
	}
	switch o.Do {
	case sinkadmin.Pause, sinkadmin.Resume, sinkadmin.Remove:
	case sinkadmin.Skip:
		if o.ID == "" {
			return o, mistake("the form names no change")
		}
		o.Anonymous, err = p.unseen(ctx, o.ID)
	case sinkadmin.Replay:
		if o.From.Since, err = moment(form, "since"); err != nil || !o.From.Since.IsZero() {
			return o, err
		}
		if o.From.After, err = strconv.ParseInt(form.Get("position"), 10, 64); err != nil || o.From.After < 0 {
			return o, mistake("the form does not say where the replay begins")
		}
	case sinkadmin.Send, sinkadmin.Drop:
		if o.ID != "" {
			o.Letters = make([]sinkadmin.Letter, 1)
			o.Letters[0], err = p.o.Console.Letter(ctx, sink, o.ID)
			return o, err
		}
		until, err := moment(form, "until")
		if err == nil && until.IsZero() {
			err = mistake("the form does not say which dead letters")
		}
		if err != nil {
			return o, err
		}
		o.Letters, _, err = p.o.Console.Aside(ctx, sink, until)
		return o, err
	}
	return o, err
}

// moment returns a time of a form; the zero time if the form does not have it.
func moment(form url.Values, name string) (time.Time, error) {
	text := form.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, mistake("%s=%s is not a time", name, text)
	}
	return at, nil
}

// notGiven makes an error that says why an order was not given.
func notGiven(err error) error {
	var user *UserError
	var unchecked *access.CheckError
	switch known := notDone(err); {
	case errors.As(err, &user), errors.As(err, &unchecked):
		return err
	case known != nil:
		return known
	case errors.Is(err, context.DeadlineExceeded):
		return &orderError{code: http.StatusGatewayTimeout, text: "The order was not given: to read the state of the sink takes too long."}
	}
	return &orderError{code: http.StatusBadGateway, text: "The order was not given: " + err.Error() + "."}
}

// failed makes an error that says why an order that was given failed, and whether it may have been carried out.
func failed(err error) *orderError {
	known := notDone(err)
	switch {
	case errors.Is(err, control.ErrUncertain):
		return &orderError{code: http.StatusGatewayTimeout, text: sentence(err)}
	case known != nil:
		return known
	case errors.Is(err, context.DeadlineExceeded):
		text := "It takes too long: the sink's current delivery does not end, or the receiver or the disk is slow."
		return &orderError{code: http.StatusGatewayTimeout, text: text + perhaps}
	}
	return &orderError{code: http.StatusBadGateway, text: "The order failed: " + err.Error() + "." + perhaps}
}

const perhaps = " The order may have been carried out, or a part of it. Look at the sink before you repeat it."

// notDone makes an error that says why an order was certainly not carried out; nil if that is not certain.
func notDone(err error) *orderError {
	var refusal *control.Refusal
	var none *control.NoDaemonError
	switch {
	case errors.As(err, &refusal):
		return &orderError{code: http.StatusConflict, text: sentence(refusal)}
	case errors.As(err, &none):
		return &orderError{code: http.StatusServiceUnavailable, text: "No daemon runs that could carry out the order: " + none.Error() + "."}
	case errors.Is(err, control.ErrSilent):
		return &orderError{code: http.StatusGatewayTimeout, text: sentence(err)}
	}
	return nil
}

// present returns the state of a sink after an order that failed, perhaps because its time is over; nil if it cannot be read.
func (p *Page) present(r *http.Request, name string) *sinkRow {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), presentTime)
	defer cancel()
	s, err := p.state(ctx)
	if err != nil {
		return nil
	}
	found, former, err := s.Find(name)
	if err != nil {
		return nil
	}
	row, err := p.sinkRow(ctx, *found, former)
	if err != nil {
		return nil
	}
	return &row
}

// sentence begins an error's text with a capital letter and ends it with a full stop.
func sentence(err error) string {
	text := strings.TrimSuffix(err.Error(), ".") + "."
	if first := text[0]; first >= 'a' && first <= 'z' {
		text = string(first-'a'+'A') + text[1:]
	}
	return text
}

// count writes a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return thousands(int(n)) + " " + thing + "s"
}
