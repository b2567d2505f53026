// One of several SMSCs that share a store, so that a kill of an SMSC does not lose the submitted
// messages and another SMSC can send their receipts. The store is in the test; both sides send JSON
// lines. The line "flush" on standard input sends a flush to the store after all earlier submissions.
// Any other line closes a random session.
'use strict';
const net = require('net');
const readline = require('readline');
const smpp = require('smpp');

const flags = Object.fromEntries(process.argv.slice(2).map((a) => a.split('=')));
const windowSize = 20;
const store = net.connect(Number(flags.store), '127.0.0.1');
const send = (o) => store.write(JSON.stringify(o) + '\n');
const callbacks = new Map();
let questions = 0;
const request = (o, callback) => {
  callbacks.set(++questions, callback);
  send({ ...o, question: questions });
};
readline.createInterface({ input: store }).on('line', (line) => {
  const answer = JSON.parse(line);
  const callback = callbacks.get(answer.question);
  callbacks.delete(answer.question);
  callback(answer);
});
store.on('close', () => process.exit(0));

const sessions = new Set();
let requesting = false;

// pump requests items to deliver while a receiver has room in its window.
function pump() {
  const ready = [...sessions].filter((s) => s.receives && s.open.size < windowSize);
  if (requesting || ready.length === 0) return;
  requesting = true;
  request({ op: 'next' }, ({ items }) => {
    requesting = false;
    for (const [i, item] of (items || []).entries()) deliver(ready[i % ready.length], item);
    if (items) pump();
  });
}
setInterval(pump, 20);

function deliver(s, item) {
  if (!sessions.has(s)) {
    send({ op: 'back', item: item.item });
    return;
  }
  s.open.add(item.item);
  const fields = {
    source_addr_ton: 1, source_addr_npi: 1, source_addr: item.from, dest_addr_ton: 1, dest_addr_npi: 1, destination_addr: item.to,
    esm_class: item.class, short_message: Buffer.from(item.text, 'hex'),
  };
  if (item.class === 4) fields.user_message_reference = item.reference;
  s.send(new smpp.PDU('deliver_sm', fields), (answer) => {
    if (s.open.delete(item.item)) send({ op: answer.command_status === 0 ? 'done' : 'back', item: item.item });
  });
}

smpp.createServer((s) => {
  s.open = new Set();
  const bind = (pdu) => {
    s.receives = pdu.command !== 'bind_transmitter';
    sessions.add(s);
    s.send(pdu.response({ system_id: 'smsc' }));
  };
  for (const command of ['bind_transceiver', 'bind_receiver', 'bind_transmitter']) s.on(command, bind);
  s.on('submit_sm', (pdu) => {
    const { udh, message } = pdu.short_message;
    request({
      op: 'take', from: pdu.source_addr, to: pdu.destination_addr, text: (udh ? Buffer.concat(udh).toString('hex') : '') + message,
      reference: pdu.user_message_reference,
    }, ({ id }) => s.send(pdu.response({ message_id: id })));
  });
  s.on('enquire_link', (pdu) => s.send(pdu.response()));
  s.on('unbind', (pdu) => { s.send(pdu.response()); s.close(); });
  s.on('error', () => {});
  s.on('close', () => {
    sessions.delete(s);
    for (const item of s.open) send({ op: 'back', item });
    s.open.clear();
  });
}).listen(Number(flags.port), '127.0.0.1');

readline.createInterface({ input: process.stdin })
  .on('line', (line) => {
    const open = [...sessions];
    if (line === 'flush') send({ op: 'flush' });
    else if (open.length > 0) open[Math.floor(Math.random() * open.length)].socket.destroy();
  })
  .on('close', () => process.exit(0));
