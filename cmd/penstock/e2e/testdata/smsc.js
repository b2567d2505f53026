// An SMSC for the tests. It accepts binds, and reads messages from standard input, one JSON object
// per line. It splits messages into parts, shuffles the PDUs, repeats some of them, and delivers them
// in turn to the sessions that are not bound as transmitters, up to a window of PDUs at a time. Like
// other SMSCs, it delivers a PDU again if the answer is not 0. It prints events, one JSON object per
// line.
//
// A message is {from, to, coding, text | data (hex), form, twice}. form is plain, udh8, udh16, sar,
// payload, data_sm or receipt. twice is "pdu" to send the same PDU again, "part" to send the first
// part of a long message again with another sequence number, or "id" to send all parts twice with the
// id of the message. {raw} sends octets (hex) unchanged to the newest receiving session.
//
// It accepts and prints submitted messages, and sends receipts for them; the last two digits of the
// number select the outcome. With receipts=no it sends no receipts, with silent=yes it does not print
// submissions, with input=no it reads no input. With sessions=1 it refuses a second bind.
'use strict';
const readline = require('readline');
const iconv = require('iconv-lite'); // smpp's own
const smpp = require('smpp');

const flags = Object.fromEntries(process.argv.slice(2).map((a) => a.split('=')));
const windowSize = Number(flags.window || 50);
const mix = Number(flags.mix || 200); // PDUs that are shuffled together
let seed = Number(flags.seed || 1);
const random = (n) => {
  seed = (seed * 1103515245 + 12345) & 0x7fffffff;
  return seed % n;
};
const print = (o) => process.stdout.write(JSON.stringify(o) + '\n');

let receivers = []; // bound sessions, except transmitters
let turn = 0;
let sessions = 0; // number of bound sessions
let queue = []; // shuffled PDUs that wait
let unshuffled = []; // PDUs to shuffle
let inFlight = 0;
let requeued = 0; // number of PDUs that will be queued again
let answered = 0;
let refused = 0;
let broken = 0;
let ended = false; // true after the last message
let reference = 0;

const encode = {
  0: (m) => smpp.encodings.ASCII.encode(m.text), // the name of GSM 03.38 in the library
  1: (m) => Buffer.from(m.text, 'ascii'),
  3: (m) => smpp.encodings.LATIN1.encode(m.text),
  6: (m) => iconv.encode(m.text, 'iso88595'),
  7: (m) => iconv.encode(m.text, 'iso88598'),
  8: (m) => smpp.encodings.UCS2.encode(m.text),
};

// cut splits octets at any position, even within an escape or a character.
function cut(octets, size) {
  const parts = [];
  for (let offset = 0; offset < octets.length; offset += size) parts.push(octets.subarray(offset, offset + size));
  return parts;
}

function pdus(m) {
  const octets = m.data ? Buffer.from(m.data, 'hex') : encode[m.coding](m);
  const base = {
    source_addr_ton: /^\d+$/.test(m.from) ? 1 : 5, source_addr_npi: 1, source_addr: m.from,
    dest_addr_ton: 1, dest_addr_npi: 1, destination_addr: m.to, data_coding: m.coding, esm_class: 0,
  };
  const ref = ++reference;
  const partSize = m.coding === 0 ? 153 : 134;
  const udh = (head, size) => {
    const parts = cut(octets, size);
    return parts.map((part, i) => ({
      ...base, esm_class: 0x40,
      short_message: Buffer.concat([Buffer.from([...head, parts.length, i + 1]), part]),
    }));
  };
  switch (m.form) {
    case 'udh8': return udh([5, 0, 3, ref & 0xff], partSize);
    case 'udh16': return udh([6, 8, 4, (ref >> 8) & 0xff, ref & 0xff], partSize - 2);
    case 'sar': {
      const parts = cut(octets, partSize);
      return parts.map((part, i) => ({
        ...base, short_message: part,
        sar_msg_ref_num: ref & 0xffff, sar_total_segments: parts.length, sar_segment_seqnum: i + 1,
      }));
    }
    case 'payload': return [{ ...base, short_message: Buffer.alloc(0), message_payload: octets }];
    case 'data_sm': return [{ ...base, command: 'data_sm', message_payload: octets }];
    case 'receipt': return [{ ...base, esm_class: 4, short_message: octets }];
    default: return [{ ...base, short_message: octets }];
  }
}

function add(m) {
  const parts = pdus(m);
  const twice = m.twice === 'part' && parts.length === 1 ? 'pdu' : m.twice; // a repeated single part is not distinct from a new message
  for (const [i, pdu] of parts.entries()) {
    const id = twice === 'id' ? { receipted_message_id: 'M' + reference } : {};
    const copy = { ...pdu, ...id };
    unshuffled.push({ pdu: copy, resend: twice === 'pdu' });
    if ((twice === 'part' && i === 0) || twice === 'id') unshuffled.push({ pdu: { ...copy }, resend: false });
  }
  if (unshuffled.length >= mix) shuffle();
}

function shuffle() {
  for (let i = unshuffled.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [unshuffled[i], unshuffled[j]] = [unshuffled[j], unshuffled[i]];
  }
  queue = queue.concat(unshuffled);
  unshuffled = [];
  pump();
}

function pump() {
  while (inFlight < windowSize && queue.length > 0) {
    const ready = receivers.filter((s) => s.socket.writable);
    if (ready.length === 0) break;
    deliver(ready[turn++ % ready.length], queue.shift());
  }
  if (ended && inFlight + requeued === 0 && queue.length === 0 && unshuffled.length === 0) {
    ended = false;
    print({ done: true, answered, refused, broken });
  }
}

function deliver(session, item) {
  const { command = 'deliver_sm', ...fields } = item.pdu;
  const pdu = new smpp.PDU(command, fields);
  let unsettled = true;
  inFlight++;
  const settle = (status) => {
    if (!unsettled) return;
    unsettled = false;
    inFlight--;
    session.open.delete(settle);
    if (status === 0) {
      answered++;
      if (answered % 100 === 0) print({ answered });
    } else {
      if (status === null) broken++; else refused++;
      print({ status });
      requeued++;
      setTimeout(() => { requeued--; queue.push(item); pump(); }, status === null ? 0 : 100);
    }
    pump();
  };
  session.open.add(settle);
  session.send(pdu, (answer) => {
    if (item.resend) { // as if the answer was slow or lost
      item.resend = false;
      session.socket.write(pdu.toBuffer());
    }
    settle(answer.command_status);
  });
}

let submissionCount = 0; // number of submitted messages
const submissionsByNumber = new Map(); // number of submissions by phone number

// state returns the text of a receipt, as in appendix B of SMPP 3.4.
const state = (id, stat) =>
  `id:${id} sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:${stat} err:000 text:`;
const byText = (id, stat) => ({ esm_class: 4, short_message: state(id, stat) });
const byTLV = (id, message_state) => ({
  esm_class: 4, short_message: Buffer.from('say nothing'), receipted_message_id: id, message_state,
});

// receiptsOfTwo returns the receipts of two messages with the same id after both were submitted.
let twinCount = 0;
const receiptsOfTwo = (number) => (++twinCount % 2 ? [] : [['14', 'UNDELIV'], ['15', 'DELIVRD']].map(([end, stat]) => (
  { ...byText('TWICE', stat), source_addr: number.slice(0, -2) + end })));

// outcomes are the outcomes by the last two digits of the number: the id and the status in the answer,
// whether the answer is lost, and the receipts before and after the answer.
const outcomes = {
  '00': (n) => ({ id: `M${n}`, after: [byText(`M${n}`, 'DELIVRD')] }),
  '01': (n) => ({ id: `m${n}`, after: [byTLV(`M${n}`, 2)] }),
  '02': (n) => ({ id: (n + 0xa0000).toString(16), after: [byText(String(n + 0xa0000), 'DELIVRD')] }),
  '03': (n) => ({ id: String(n + 0xb0000), after: [byText((n + 0xb0000).toString(16).toUpperCase(), 'DELIVRD')] }),
  '04': (n) => ({ id: `0000${n}c`, after: [byText(`${n}C`, 'DELIVRD')] }),
  '05': (n) => ({ id: `E${n}`, before: [byText(`E${n}`, 'DELIVRD')] }),
  '06': (n, times) => (times ? { id: `T${n}`, after: [byText(`T${n}`, 'DELIVRD')] } : { status: smpp.ESME_RTHROTTLED }),
  '07': (n, times) => (times ? { id: `Q${n}`, after: [byTLV(`Q${n}`, 2)] } : { status: smpp.ESME_RMSGQFUL }),
  '08': (n, _, pdu) => ({
    lost: true, after: [{ ...byText(`L${n}`, 'DELIVRD'), user_message_reference: pdu.user_message_reference }],
  }),
  '09': (n) => ({ id: `U${n}`, after: [byText(`U${n}`, 'UNDELIV')] }),
  '10': (n) => ({ id: `B${n}`, after: [byTLV(`B${n}`, 1), byText(`B${n}`, 'DELIVRD')] }),
  '11': () => ({ status: smpp.ESME_RINVDSTADR }),
  '12': () => ({ lost: true }),
  // The answer to the first part is lost, the second part is not delivered, later parts are delivered.
  '16': (n, times) => (times ? { id: `R${n}`, after: [byText(`R${n}`, times === 1 ? 'UNDELIV' : 'DELIVRD')] } : { lost: true }),
  // Two messages have the same id. The receipts of both are sent after the second message.
  '14': (n, _, pdu) => ({ id: 'TWICE', after: receiptsOfTwo(pdu.destination_addr) }),
  '15': (n, _, pdu) => ({ id: 'TWICE', after: receiptsOfTwo(pdu.destination_addr) }),
  '13': (n) => ({ id: `D${n}`, after: [{ command: 'data_sm', ...byTLV(`D${n}`, 2), short_message: undefined }] }),
};

function handleSubmission(s, pdu) {
  const number = pdu.destination_addr;
  const times = submissionsByNumber.get(number) || 0;
  submissionsByNumber.set(number, times + 1);
  const n = ++submissionCount;
  const outcome = (outcomes[number.slice(-2)] || outcomes['00'])(n, times, pdu);
  const m = pdu.short_message;
  const { udh } = m;
  if (!flags.silent) {
    print({
      submitted: number, over: s.command, from: pdu.source_addr, coding: pdu.data_coding, class: pdu.esm_class, protocol: pdu.protocol_id,
      replace: pdu.replace_if_present_flag, text: typeof m.message === 'string' ? m.message : Buffer.from(m.message || []).toString('hex'),
      part: udh ? Buffer.concat(udh).toString('hex') : '',
    });
  }
  const report = (list) => {
    if (flags.receipts === 'no') return;
    for (const receipt of list || []) {
      queue.push({
        pdu: {
          source_addr_ton: 1, source_addr_npi: 1, source_addr: number,
          dest_addr_ton: 1, dest_addr_npi: 1, destination_addr: pdu.source_addr, ...receipt,
        },
      });
    }
    pump();
  };
  const answer = () => {
    if (!outcome.lost) s.send(pdu.response({ command_status: outcome.status || 0, message_id: outcome.status ? undefined : outcome.id }));
    report(outcome.after);
  };
  report(outcome.before);
  if (outcome.before) setTimeout(answer, 300); else answer();
}

const server = smpp.createServer((s) => {
  s.open = new Set();
  const bind = (pdu) => {
    if (flags.password && pdu.password !== flags.password) {
      s.send(pdu.response({ command_status: smpp.ESME_RINVPASWD }));
      s.close();
      return;
    }
    if (flags.sessions && sessions >= Number(flags.sessions)) {
      print({ excess: true });
      s.send(pdu.response({ command_status: smpp.ESME_RALYBND }));
      s.close();
      return;
    }
    sessions++;
    s.on('close', () => sessions--);
    s.send(pdu.response({ system_id: 'smsc' }));
    s.command = pdu.command;
    if (s.command !== 'bind_transmitter') receivers.push(s);
    print({ bound: pdu.command, system_id: pdu.system_id });
    pump();
  };
  s.on('bind_transceiver', bind);
  s.on('bind_receiver', bind);
  s.on('bind_transmitter', bind);
  s.on('submit_sm', (pdu) => handleSubmission(s, pdu));
  s.on('pdu', (pdu) => { // answers to raw PDUs
    if (pdu.isResponse() && !s._callbacks[pdu.sequence_number]) {
      print({ answer: pdu.command, sequence: pdu.sequence_number, status: pdu.command_status });
    }
  });
  s.on('enquire_link', (pdu) => { print({ asked: true }); s.send(pdu.response()); });
  s.on('unbind', (pdu) => { print({ unbound: true, open: s.open.size }); s.send(pdu.response()); s.close(); });
  s.on('error', () => {});
  s.on('close', () => {
    receivers = receivers.filter((other) => other !== s);
    print({ closed: true });
    for (const settle of [...s.open]) settle(null);
  });
  if (flags.enquire) {
    const timer = setInterval(() => s.enquire_link(() => print({ alive: true })), Number(flags.enquire));
    s.on('close', () => clearInterval(timer));
  }
});
server.listen(Number(flags.port || 0), '127.0.0.1', () => print({ listening: server.address().port }));

if (flags.input !== 'no') readline.createInterface({ input: process.stdin })
  .on('line', (line) => {
    const m = JSON.parse(line);
    if (m.raw) receivers.at(-1).socket.write(Buffer.from(m.raw, 'hex'));
    else if (m.end) { shuffle(); ended = true; pump(); } else add(m);
  })
  .on('close', () => process.exit(0));
