package redisstore

import (
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// Every key the gateway has in Redis is named here, in ledger_keys.go or in
// message_keys.go, and nowhere else; asynq's own begin with "asynq:".
//
// What one script touches carries one hash tag: {a<account id>} for the records
// of an account, so that any number of its keys can change in one step on a
// cluster. Global keys have a tag of their own each and are changed alone.
// Ids hold no braces.

// tag is the hash tag of an account, alone in braces.
func tag(acct account.ID) string { return "{a" + acct.String() + "}" }

// keyCheck is a string that says nothing: whether it can be written is what
// matters. Expires.
func keyCheck() string { return "penstock:check" }

// ---- outbox: deliveries -------------------------------------------------

// keyOutboxAccounts is a set of the ids of accounts that have deliveries.
// An account is added before its first delivery and never removed.
func keyOutboxAccounts() string { return "{outbox}:accounts" }

// keyDelivery is a hash, one delivery. Fields:
//
//	static   JSON of what never changes
//	created  ms of creation
//	state    queued, retrying, delivered, simulated or dead
//	reason   why it retries or is dead
//	due      ms of the next attempt or of the lease's end; 0 when ended
//	leased   1 while due is the end of a lease
//	waits    breaker or turn while it waits for that instead of a time
//	until    ms to which a breaker may hold it; empty if none has
//	line     the endpoint if that is ordered
//	tries    attempts since creation or the last replay
//	attempts JSON objects of all attempts, each with a comma after it
//	ats      a comma, then the time (ns) of each attempt and a comma
//
// Without expiry while it waits; an ended one expires with the retention of its
// state, counted from its end.
func keyDelivery(acct account.ID, id string) string { return tag(acct) + ":delivery:" + id }

// keyOutboxMessage is a set: "<account>/<id>" of the deliveries of a message, of
// all accounts. Expires with the retention of what arrived.
func keyOutboxMessage(messageID string) string { return "outbox:message:" + messageID }

// keyOutboxDue is a sorted set of the ids of waiting deliveries; score: ms of
// the next attempt or of the lease's end.
func keyOutboxDue(acct account.ID) string { return tag(acct) + ":outbox:due" }

// keyOutboxHeld is a sorted set of the ids of deliveries that wait for the
// breaker of an endpoint; score: ms to which they wait at most.
func keyOutboxHeld(acct account.ID, endpoint string) string {
	return tag(acct) + ":outbox:held:" + endpoint
}

// keyOutboxLines is a set of the endpoints that deliveries wait for.
func keyOutboxLines(acct account.ID) string { return tag(acct) + ":outbox:lines" }

// keyOutboxOrder is a sorted set of the ids of the deliveries to an ordered
// endpoint that have not ended; score: their place. The first one is attempted.
func keyOutboxOrder(acct account.ID, endpoint string) string {
	return tag(acct) + ":outbox:order:" + endpoint
}

// keyBreakers is a hash: endpoint → JSON of outbox.Breaker, those that are open.
func keyBreakers() string { return "{breakers}:open" }

// keyOutboxCreated is a sorted set of the ids of all deliveries; score: ms of
// creation. A sweep removes members whose record has expired.
func keyOutboxCreated(acct account.ID) string { return tag(acct) + ":outbox:created" }

// keyOutboxState is a sorted set of the ids of deliveries in a state; score: ms
// of creation. A sweep removes members whose record has expired.
func keyOutboxState(acct account.ID, state outbox.State) string {
	return tag(acct) + ":outbox:state:" + string(state)
}

// ---- job: work that is answered with an id ------------------------------

// keyJobAccounts is a set of the ids of accounts that have had jobs. An account
// is added before its first job and never removed.
func keyJobAccounts() string { return "{jobs}:accounts" }

// keyJob is a hash, one job. Fields:
//
//	static   JSON of what never changes
//	state    queued, processing, completed or failed
//	due      ms when somebody may work on it; 0 when it has ended
//	tries    runs that were begun
//	updated  ms of the last change
//	result   JSON, when completed
//	error    why it failed or has to be tried again
//	settled  JSON of what it has brought about, set in one step with that
//	list     the key of the list it stands in, with place, kind and name
//
// Expires some time after its end, if the job says so.
func keyJob(acct account.ID, id string) string { return tag(acct) + ":job:" + id }

// keyJobsDue is a sorted set of the ids of jobs that have not ended; score: ms
// when somebody may work on them.
func keyJobsDue(acct account.ID) string { return tag(acct) + ":jobs:due" }

// keyJobsLast is a counter: the last place in the account's lists of jobs.
func keyJobsLast(acct account.ID) string { return tag(acct) + ":jobs:last" }

// keyJobsList is what the keys of a list of jobs begin with; see keyJobsOf.
func keyJobsList(acct account.ID, list string) string { return tag(acct) + ":jobs:list:" + list }

// keyJobsOf is a sorted set, the jobs of a list that a filter selects, of which
// any part may be empty: job id; score: its place. A job is in all that select it.
func keyJobsOf(base string, state job.State, kind job.Kind, name string) string {
	return base + "|" + string(state) + "|" + string(kind) + "|" + name
}

// keyJobsEnds is a sorted set: "<id>|<state>|<kind>|<name>" of the jobs of a list
// that have ended; score: ms when their record expires.
func keyJobsEnds(base string) string { return base + "|ends" }

// ---- credit -------------------------------------------------------------

// keyCredit is a hash: balance → credits, never below zero; last → the sequence
// of the last change. Never expires.
func keyCredit(acct account.ID) string { return tag(acct) + ":credit" }

// keyCreditEntries is a hash: sequence → "<change>|<balance>|<JSON>", the newest
// changes.
func keyCreditEntries(acct account.ID) string { return tag(acct) + ":credit:entries" }

// keyCreditOnce is a string: the sequence of the change that has an id. Expires.
func keyCreditOnce(acct account.ID, id string) string { return tag(acct) + ":credit:once:" + id }

// ---- lookup: networks, answers ------------------------------------------

// keyNetworks is a hash: prefix → JSON of lookup.Network.
func keyNetworks() string { return "{networks}:records" }

// keyLookup is a string: JSON of lookup.Result, what a number's network said.
// Expires.
func keyLookup(number string) string { return "lookup:answer:" + number }

// ---- sim: SIMs, pools, subscribers ---------------------------------------

// keySIM is a hash, one SIM; a field that would be empty is not there. Fields:
//
//	imsi, msisdn, pin, pin2, puk, puk2  digits
//	4g, 5g      1 with the service
//	state       pending, active, suspended or terminated
//	asked       the state asked for, while it is another
//	job         id of the job in flight
//	sub, pool   ids of the subscriber and of the pool
//	left        name of the call that took it out of a pool last
//	limit, warn bytes a month
//	cap         notify or block
//	recipients  JSON array of sim.Recipient
//	v           counts the changes; who saves names the one it has read
func keySIM(acct account.ID, iccid sim.ICCID) string { return tag(acct) + ":sim:" + string(iccid) }

// keySIMs is a sorted set of a scope's SIMs by a column; members: listing.go.
func keySIMs(acct account.ID, in sim.Scope, column string) string {
	switch {
	case in.Pool != "":
		return tag(acct) + ":sims:pool:" + in.Pool + ":" + column
	case in.Subscriber != "":
		return tag(acct) + ":sims:sub:" + in.Subscriber + ":" + column
	}
	return tag(acct) + ":sims:" + column
}

// keyPools is a hash: pool id → JSON of sim.Pool.
func keyPools(acct account.ID) string { return tag(acct) + ":pools" }

// keyPoolsVersion is a counter of changes to any pool of an account.
func keyPoolsVersion(acct account.ID) string { return tag(acct) + ":pools:version" }

// keySubscribers is a hash: subscriber id → JSON of sim.Subscriber.
func keySubscribers(acct account.ID) string { return tag(acct) + ":subscribers" }

// keySubscribersBy is a sorted set of an account's subscribers by a column, names
// in lower case; members: listing.go.
func keySubscribersBy(acct account.ID, column string) string {
	return tag(acct) + ":subscribers:" + column
}

// ---- sip ----------------------------------------------------------------

// keyTrunks is a hash: account id → JSON array of sip.Trunk.
func keyTrunks() string { return "{trunks}:of" }

// ---- account: accounts, tokens, the inventory ---------------------------

// keyAccounts is a hash: account id → JSON of account.Account. Never expires.
func keyAccounts() string { return "{accounts}:records" }

// keyAccountsVersion is a counter of what REST changed of accounts.
func keyAccountsVersion() string { return "{accounts}:version" }

// keyAccountNames is a hash: account name → account id.
func keyAccountNames() string { return "{accounts}:names" }

// keyAccountNext is a counter: the last account id that was assigned.
func keyAccountNext() string { return "{accounts}:next" }

// keyTokens is a hash: hex SHA-256 of a token → JSON of account.Token.
func keyTokens() string { return "{tokens}:records" }

// keySources is a hash: source → hash of the token it names.
func keySources() string { return "{tokens}:sources" }

// keyTokensChanged is a channel: something is published whenever a token was
// changed or removed, and every gateway forgets what it remembers.
func keyTokensChanged() string { return "penstock:tokens-changed" }

// keyLogins is a hash: username of the SOAP interface → JSON of account.Login.
func keyLogins() string { return "{logins}:records" }

// keyInventory is a string: JSON of the merged inventory, sealed.
func keyInventory() string { return "{inventory}:document" }

// ---- iot: devices, sensors, decoders, latest values ---------------------

// keyDevices is a hash: device id → JSON of iot.Device.
func keyDevices(acct account.ID) string { return tag(acct) + ":iot:devices" }

// keyIdentifiers is a hash: identifier → device id.
func keyIdentifiers(acct account.ID) string { return tag(acct) + ":iot:identifiers" }

// keyClaim is a string: the id of the only account that may have a devEUI or
// MAC address.
func keyClaim(identifier string) string { return "iot:claim:" + identifier }

// keySensors is a hash, the sensors of one device: key → JSON of iot.Sensor.
func keySensors(acct account.ID, device string) string { return tag(acct) + ":iot:sensors:" + device }

// keySeriesCount is a counter: the sensors of all of an account's devices.
func keySeriesCount(acct account.ID) string { return tag(acct) + ":iot:series" }

// keyMarkers is a hash, the event markers of one device: marker id → JSON of
// iot.Marker.
func keyMarkers(acct account.ID, device string) string { return tag(acct) + ":iot:markers:" + device }

// keyFrameOrder is a sorted set, the raw frames kept of one device: frame id;
// score: ms of receipt. Expires with the retention of frames, counted from the
// last one.
func keyFrameOrder(acct account.ID, device string) string {
	return tag(acct) + ":iot:frames:order:" + device
}

// keyFrames is a hash: frame id → JSON of iot.RawFrame. Expires with the order.
func keyFrames(acct account.ID, device string) string { return tag(acct) + ":iot:frames:" + device }

// keyRetired is a hash: sensor id → JSON of iot.Retired, of deleted devices whose
// readings have an end.
func keyRetired(acct account.ID) string { return tag(acct) + ":iot:retired" }

// keyDecoders is a hash: decoder id → JSON of iot.Decoder.
func keyDecoders(acct account.ID) string { return tag(acct) + ":iot:decoders" }

// keyLocations is a hash: location id → JSON of iot.Location.
func keyLocations(acct account.ID) string { return tag(acct) + ":iot:locations" }

// keyIoTVersion is a counter of changes to what frames of an account need.
func keyIoTVersion(acct account.ID) string { return tag(acct) + ":iot:version" }

// keyLatest is a hash, the newest reading per sensor of one device: sensor id →
// "<ns since 1970, 20 digits>|n|<sensor type>|<value>" or "…|t|<type>|<text>".
func keyLatest(acct account.ID, device string) string { return tag(acct) + ":iot:latest:" + device }

// keySeen is a string: the journal record that brought a frame first. Expires
// after the window for duplicates.
func keySeen(acct account.ID, device, dedup string) string {
	return tag(acct) + ":iot:seen:" + device + ":" + dedup
}

// keyTold is a hash, what posts have told of one frame: at → ns since 1970 under
// which the frame is stored; position → "<latitude>|<longitude>"; g:<gateway> →
// "<SNR>|<RSSI>". Expires after the window for duplicates.
func keyTold(acct account.ID, device, dedup string) string {
	return tag(acct) + ":iot:told:" + device + ":" + dedup
}

// keyHeard is a hash: device id → ns since 1970, 20 digits, when the device was
// heard last.
func keyHeard(acct account.ID) string { return tag(acct) + ":iot:heard" }

// keySensorTypes is a hash: sensor type id → JSON of iot.SensorType.
func keySensorTypes() string { return "{sensortypes}:records" }

// keySensorTypesVersion is a counter of changes to sensor types.
func keySensorTypesVersion() string { return "{sensortypes}:version" }

// ---- event: marks of the journal's records ------------------------------

// journalTag is the hash tag of one journal: one kind of traffic of one node.
func journalTag(node, kind string) string { return "{j" + node + kind + "}" }

// keyMarks is a hash: sequence → JSON of event.Mark.
func keyMarks(node, kind string) string { return journalTag(node, kind) + ":marks" }

// keyMarksIn is a sorted set of the sequences marked with a state; score: the
// sequence.
func keyMarksIn(node, kind, state string) string { return journalTag(node, kind) + ":in:" + state }

// ---- relays: relays, routes, parts of messages --------------------------

// All of these share one tag: a number or prefix belongs to one account in the
// whole gateway, so that taking it, saving the relay and counting the version
// up must be one step.

// keyRelays is a hash, the relays of an account: "<kind>/<id>" → JSON of
// inbound.Relay.
func keyRelays(acct account.ID) string { return "{relays}:of:" + acct.String() }

// keyRoutes is a hash of a kind of relay: number or prefix → "<account>/<id>"
// of the relay that has it.
func keyRoutes(kind string) string { return "{relays}:route:" + kind }

// keyRelaysVersion is a counter of changes to any relay.
func keyRelaysVersion() string { return "{relays}:version" }

// keyCarrierID is a string: the message of ours that a carrier's id became.
// Expires after the time that carriers' ids are remembered.
func keyCarrierID(claim string) string { return "inbound:claim:" + claim }

// keyInboxOrder is a sorted set, the inbox of a relay: message id; score: ms of
// receipt. Never expires: what is in it goes when it is acknowledged.
func keyInboxOrder(acct account.ID, relayID string) string {
	return tag(acct) + ":inbox:order:" + relayID
}

// keyInboxMessages is a hash: message id → JSON of inbound.Kept.
func keyInboxMessages(acct account.ID, relayID string) string {
	return tag(acct) + ":inbox:messages:" + relayID
}

// keyInboxDone is a string: a message was acknowledged and must not come back
// when its journal record is processed again. Expires.
func keyInboxDone(acct account.ID, relayID, id string) string {
	return tag(acct) + ":inbox:done:" + relayID + ":" + id
}

// What joins the parts of messages is spread over partShards hash tags, since
// parts of one message must change in one step with the list of what is due,
// and one node of a cluster should not have them all. A group is 32 hex digits.

// partShards is how many there are; changing it strands what waits.
const partShards = 16

// shardOf is the shard of a group: its first hex digit.
func shardOf(group string) int {
	n, _ := strconv.ParseUint(group[:1], 16, 8) // groups are hex
	return int(n)
}

func partsTag(shard int) string { return "{p" + strconv.Itoa(shard) + "}" }

// keyPartsOpen is a hash, a message that waits for parts: part's number →
// "<digest>|<id>|<JSON of inbound.Message>"; copy:<id> of parts that came twice.
func keyPartsOpen(group string) string { return partsTag(shardOf(group)) + ":open:" + group }

// keyPartsFinished is a hash, the last message of a group: id → its id;
// all → JSON array of its parts; of:<a part's id> → its id; part:<number> →
// digest; until → ms to which the same parts repeat it. Expires.
func keyPartsFinished(group string) string { return partsTag(shardOf(group)) + ":finished:" + group }

// keyPartsDue is a sorted set: "o:<group>" of an open group or
// "r:<group>:<id>" of one that is ready; score: ms when somebody must act.
func keyPartsDue(shard int) string { return partsTag(shard) + ":due" }

// keyPartsReady is a hash: "r:<group>:<id>" → JSON array of a group's parts
// that are being sent on.
func keyPartsReady(shard int) string { return partsTag(shard) + ":ready" }

// keyPartParked is a string: "<id>|<JSON array of parts>" of a message that
// nobody took, by the event at which that is noted. Expires.
func keyPartParked(group, event string) string {
	return partsTag(shardOf(group)) + ":parked:" + event
}

// memberReady names a group that is ready.
func memberReady(group, id string) string { return "r:" + group + ":" + id }

// groupOfMember reads the group out of a member of due.
func groupOfMember(member string) string {
	group, _, _ := strings.Cut(member[2:], ":")
	return group
}
