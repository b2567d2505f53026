// Drives the SOAP interface with npm's soap, and prints what came of each step.
// Usage: client.js WSDL USERNAME PASSWORD. A line of JSON a step: its name, and
// the answer's children or the text of the Fault.
'use strict';
const soap = require('soap');
const [wsdl, username, password] = process.argv.slice(2);
const numbers = { number: ['447700900123', '447700900124'] };

async function say(step, client, operation, fields, user, secret) {
  client.clearSoapHeaders();
  if (user) client.addSoapHeader({ auth: { username: user, password: secret } }, '', 'tns', 'urn:penstock:messaging');
  let found;
  try {
    const [answer] = await client[operation + 'Async'](fields);
    found = { responsecode: answer.responsecode, creditsused: answer.creditsused, description: answer.description };
  } catch (err) {
    const fault = err.root && err.root.Envelope.Body.Fault;
    if (!fault) throw err;
    found = { fault: fault.faultstring || (fault.Reason.Text.$value || fault.Reason.Text) };
  }
  console.log(JSON.stringify({ step, ...found }));
}

async function main() {
  const soap11 = await soap.createClientAsync(wsdl);
  const soap12 = await soap.createClientAsync(wsdl, { forceSoap12Headers: true });
  const hi = { destinationarray: numbers, message: 'hi', messagetype: 'text' };
  await say('text', soap11, 'SoapSendSms', {
    destinationarray: numbers, originator: 'Penstock', message: 'Fridge 3 is warm & <open> €', messagetype: 'text', maxconcat: 3,
    dlrep: { callbackurl: 'https://example.com/dlr?id=%msgid&code=%code', callbacktype: 'HTTPGET' },
  }, username, password);
  await say('later', soap11, 'SoapSendSms', {
    destinationarray: numbers, message: 'ç'.repeat(71), messagetype: 'flash', sendtime: new Date(Date.now() + 86400e3).toISOString(),
    dlrep: { callbackurl: '', callbacktype: 'NONE' },
  }, username, password);
  await say('binary', soap11, 'SoapSendBinarySms', { destinationarray: numbers, data: '00ff10', udh: '0605040b8423f0', encoding: 8 }, username, password);
  await say('push', soap11, 'SoapSendWapPush', {
    destinationarray: numbers, originator: '447700900001', waptitle: 'Offers', wapurl: 'http://www.example.com/a?b=1&c=2',
  }, username, password);
  await say('notification', soap11, 'SoapSendMMSNot', {
    destinationarray: numbers, originator: '447700900001', subject: 'Grüße', mmsurl: 'http://mms.example.com/1', filesize: 30720, class: 80, expiry: 86400,
  }, username, password);
  await say('soap12', soap12, 'SoapSendSms', hi, username, password);
  await say('stranger', soap11, 'SoapSendSms', hi, username, 'wrong');
  await say('stranger12', soap12, 'SoapSendSms', hi, username, 'wrong');
  await say('anonymous', soap11, 'SoapSendSms', hi, '', '');
  await say('invalid', soap11, 'SoapSendSms', { destinationarray: { number: ['0770'] }, message: 'hi', messagetype: 'loud', maxconcat: 256 }, username, password);
}

main().catch((err) => { console.error(err); process.exit(1); });
