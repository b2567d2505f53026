// An SMSC for the tests. It takes binds, reads messages from its standard input,
// a JSON object a line, cuts them into parts, mixes these up, repeats some, and
// delivers them to those who are bound and not as transmitters, in turn, a window at
// a time. What is not answered with 0 it delivers again, as SMSCs do. What happens it prints, a JSON object a
// line.
//
// A message is {from, to, coding, text | data (hex), form, twice, port}; form is
// plain, udh8, udh16, sar, payload, data_sm or receipt; twice is "pdu" for the very PDU
// again, "part" for the first part of a long message with another sequence number,
// "id" for all parts so, with an id of the message beside. {raw} is sent as it is, in
// hex, to whoever is bound.
//
// What is submitted to it it takes, prints, and reports about; the last two
// digits of the number say how (fates, below). With receipts=no it only answers,
// with silent=yes it prints nothing of it, with input=no it reads nothing. With
// sessions=1 it refuses a second bind.
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
const tell = (o) => process.stdout.write(JSON.stringify(o) + '\n');

let receivers = []; // sessions that are bound, except transmitters
let turn = 0;
let sessions = 0; // that are bound
let queue = []; // PDUs that wait, mixed
let fresh = []; // PDUs to be mixed
let underWay = 0;
let later = 0; // PDUs that will be queued again
let answered = 0;
let refused = 0;
let broken = 0;
let ended = false; // no more messages will come
let reference = 0;

const encode = {
  0: (m) => smpp.encodings.ASCII.encode(m.text), // the library calls GSM 03.38 so
  1: (m) => Buffer.from(m.text, 'ascii'),
  3: (m) => smpp.encodings.LATIN1.encode(m.text),
  6: (m) => iconv.encode(m.text, 'iso88595'),
  7: (m) => iconv.encode(m.text, 'iso88598'),
  8: (m) => smpp.encodings.UCS2.encode(m.text),
};

// cut ends parts wherever they are full: within an escape, or a character.
function cut(octets, size) {
  const parts = [];
  for (let at = 0; at < octets.length; at += size) parts.push(octets.subarray(at, at + size));
  return parts;
}

function pdus(m) {
  const octets = m.data ? Buffer.from(m.data, 'hex') : encode[m.coding](m);
  const base = {
    source_addr_ton: /^\d+$/.test(m.from) ? 1 : 5, source_addr_npi: 1, source_addr: m.from,
    dest_addr_ton: 1, dest_addr_npi: 1, destination_addr: m.to, data_coding: m.coding, esm_class: 0,
  };
  const ref = ++reference;
  const wide = m.coding === 0 ? 153 : 134;
  const udh = (head, size) => {
    const parts = cut(octets, size);
    return parts.map((part, i) => ({
      ...base, esm_class: 0x40,
      short_message: Buffer.concat([Buffer.from([...head, parts.length, i + 1]), part]),
    }));
  };
  switch (m.form) {
    case 'udh8': return udh([5, 0, 3, ref & 0xff], wide);
    case 'udh16': return udh([6, 8, 4, (ref >> 8) & 0xff, ref & 0xff], wide - 2);
    case 'sar': {
      const parts = cut(octets, wide);
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
  const all = pdus(m);
  const twice = m.twice === 'part' && all.length === 1 ? 'pdu' : m.twice; // nothing tells it from a new one
  for (const [i, pdu] of all.entries()) {
    const id = twice === 'id' ? { receipted_message_id: 'M' + reference } : {};
    const one = { ...pdu, ...id };
    fresh.push({ pdu: one, again: twice === 'pdu' });
    if ((twice === 'part' && i === 0) || twice === 'id') fresh.push({ pdu: { ...one }, again: false });
  }
  if (fresh.length >= mix) shuffle();
}

function shuffle() {
  for (let i = fresh.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [fresh[i], fresh[j]] = [fresh[j], fresh[i]];
  }
  queue = queue.concat(fresh);
  fresh = [];
  pump();
}

function pump() {
  while (underWay < windowSize && queue.length > 0) {
    const ready = receivers.filter((s) => s.socket.writable);
    if (ready.length === 0) break;
    deliver(ready[turn++ % ready.length], queue.shift());
  }
  if (ended && underWay + later === 0 && queue.length === 0 && fresh.length === 0) {
    ended = false;
    tell({ done: true, answered, refused, broken });
  }
}

function deliver(to, item) {
  const { command = 'deliver_sm', ...fields } = item.pdu;
  const pdu = new smpp.PDU(command, fields);
  let open = true;
  underWay++;
  const over = (status) => {
    if (!open) return;
    open = false;
    underWay--;
    to.open.delete(over);
    if (status === 0) {
      answered++;
      if (answered % 100 === 0) tell({ answered });
    } else {
      if (status === null) broken++; else refused++;
      tell({ status });
      later++;
      setTimeout(() => { later--; queue.push(item); pump(); }, status === null ? 0 : 100);
    }
    pump();
  };
  to.open.add(over);
  to.send(pdu, (answer) => {
    if (item.again) { // our answer was too slow, or got lost
      item.again = false;
      to.socket.write(pdu.toBuffer());
    }
    over(answer.command_status);
  });
}

let taken = 0; // messages that were submitted
const tried = new Map(); // how often each number was

// state is a receipt in text, as appendix B of SMPP 3.4 has it.
const state = (id, stat) =>
  `id:${id} sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:${stat} err:000 text:`;
const byText = (id, stat) => ({ esm_class: 4, short_message: state(id, stat) });
const byTLV = (id, message_state) => ({
  esm_class: 4, short_message: Buffer.from('say nothing'), receipted_message_id: id, message_state,
});

// twins are the receipts of two messages with one id, once both are there.
let twin = 0;
const twins = (number) => (++twin % 2 ? [] : [['14', 'UNDELIV'], ['15', 'DELIVRD']].map(([end, stat]) => (
  { ...byText('TWICE', stat), source_addr: number.slice(0, -2) + end })));

// fates are what becomes of a message: the id in the answer, its status, whether
// the answer is lost, and the receipts, before the answer or after it.
const fates = {
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
  // The answer to the first part is lost, the second is not delivered; what is sent again is.
  '16': (n, times) => (times ? { id: `R${n}`, after: [byText(`R${n}`, times === 1 ? 'UNDELIV' : 'DELIVRD')] } : { lost: true }),
  // One id for two messages; whichever is the second, its receipts are those of both.
  '14': (n, _, pdu) => ({ id: 'TWICE', after: twins(pdu.destination_addr) }),
  '15': (n, _, pdu) => ({ id: 'TWICE', after: twins(pdu.destination_addr) }),
  '13': (n) => ({ id: `D${n}`, after: [{ command: 'data_sm', ...byTLV(`D${n}`, 2), short_message: undefined }] }),
};

function take(s, pdu) {
  const number = pdu.destination_addr;
  const times = tried.get(number) || 0;
  tried.set(number, times + 1);
  const n = ++taken;
  const fate = (fates[number.slice(-2)] || fates['00'])(n, times, pdu);
  const m = pdu.short_message;
  const { udh } = m;
  if (!flags.silent) {
    tell({
      submitted: number, over: s.command, from: pdu.source_addr, coding: pdu.data_coding, class: pdu.esm_class, protocol: pdu.protocol_id,
      replace: pdu.replace_if_present_flag, text: typeof m.message === 'string' ? m.message : Buffer.from(m.message || []).toString('hex'),
      part: udh ? Buffer.concat(udh).toString('hex') : '',
    });
  }
  const report = (list) => {
    if (flags.receipts === 'no') return;
    for (const one of list || []) {
      queue.push({
        pdu: {
          source_addr_ton: 1, source_addr_npi: 1, source_addr: number,
          dest_addr_ton: 1, dest_addr_npi: 1, destination_addr: pdu.source_addr, ...one,
        },
      });
    }
    pump();
  };
  const answer = () => {
    if (!fate.lost) s.send(pdu.response({ command_status: fate.status || 0, message_id: fate.status ? undefined : fate.id }));
    report(fate.after);
  };
  report(fate.before);
  if (fate.before) setTimeout(answer, 300); else answer();
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
      tell({ excess: true });
      s.send(pdu.response({ command_status: smpp.ESME_RALYBND }));
      s.close();
      return;
    }
    sessions++;
    s.on('close', () => sessions--);
    s.send(pdu.response({ system_id: 'smsc' }));
    s.command = pdu.command;
    if (s.command !== 'bind_transmitter') receivers.push(s);
    tell({ bound: pdu.command, system_id: pdu.system_id });
    pump();
  };
  s.on('bind_transceiver', bind);
  s.on('bind_receiver', bind);
  s.on('bind_transmitter', bind);
  s.on('submit_sm', (pdu) => take(s, pdu));
  s.on('pdu', (pdu) => { // answers to what was sent raw
    if (pdu.isResponse() && !s._callbacks[pdu.sequence_number]) {
      tell({ answer: pdu.command, sequence: pdu.sequence_number, status: pdu.command_status });
    }
  });
  s.on('enquire_link', (pdu) => { tell({ asked: true }); s.send(pdu.response()); });
  s.on('unbind', (pdu) => { tell({ unbound: true, open: s.open.size }); s.send(pdu.response()); s.close(); });
  s.on('error', () => {});
  s.on('close', () => {
    receivers = receivers.filter((other) => other !== s);
    tell({ closed: true });
    for (const over of [...s.open]) over(null);
  });
  if (flags.enquire) {
    const timer = setInterval(() => s.enquire_link(() => tell({ alive: true })), Number(flags.enquire));
    s.on('close', () => clearInterval(timer));
  }
});
server.listen(Number(flags.port || 0), '127.0.0.1', () => tell({ listening: server.address().port }));

if (flags.input !== 'no') readline.createInterface({ input: process.stdin })
  .on('line', (line) => {
    const m = JSON.parse(line);
    if (m.raw) receivers.at(-1).socket.write(Buffer.from(m.raw, 'hex'));
    else if (m.end) { shuffle(); ended = true; pump(); } else add(m);
  })
  .on('close', () => process.exit(0));
