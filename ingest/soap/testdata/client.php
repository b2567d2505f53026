<?php
// Drives the SOAP interface with PHP's own client, and prints what came of each
// step. Usage: client.php WSDL USERNAME PASSWORD. A line of JSON a step: its
// name, and the answer's children or the text of the Fault.
[, $wsdl, $username, $password] = $argv;
ini_set('soap.wsdl_cache_enabled', '0');
$soap11 = new SoapClient($wsdl, ['soap_version' => SOAP_1_1, 'trace' => true]);
$soap12 = new SoapClient($wsdl, ['soap_version' => SOAP_1_2, 'trace' => true]);
$numbers = ['number' => ['447700900123', '447700900124']];

function say($step, $client, $operation, $fields, $user, $secret)
{
    $headers = $user === '' ? [] : [new SoapHeader('urn:penstock:messaging', 'auth', ['username' => $user, 'password' => $secret])];
    try {
        $answer = $client->__soapCall($operation, [$fields], null, $headers);
        $found = ['responsecode' => $answer->responsecode, 'creditsused' => $answer->creditsused, 'description' => $answer->description];
    } catch (SoapFault $fault) {
        $found = ['fault' => $fault->getMessage()];
    }
    echo json_encode(['step' => $step] + $found), "\n";
}

$hi = ['destinationarray' => $numbers, 'message' => 'hi', 'messagetype' => 'text'];
say('text', $soap11, 'SoapSendSms', ['destinationarray' => $numbers, 'originator' => 'Penstock', 'message' => 'Fridge 3 is warm & <open> €', 'messagetype' => 'text', 'maxconcat' => 3,
    'dlrep' => ['callbackurl' => 'https://example.com/dlr?id=%msgid&code=%code', 'callbacktype' => 'HTTPGET']], $username, $password);
say('later', $soap11, 'SoapSendSms', ['destinationarray' => $numbers, 'message' => str_repeat('ç', 71), 'messagetype' => 'flash',
    'sendtime' => gmdate('Y-m-d\TH:i:s\Z', time() + 86400), 'dlrep' => ['callbackurl' => '', 'callbacktype' => 'NONE']], $username, $password);
say('binary', $soap11, 'SoapSendBinarySms', ['destinationarray' => $numbers, 'data' => "\x00\xff\x10", 'udh' => "\x06\x05\x04\x0b\x84\x23\xf0", 'encoding' => 8], $username, $password);
say('push', $soap11, 'SoapSendWapPush', ['destinationarray' => $numbers, 'originator' => '447700900001', 'waptitle' => 'Offers', 'wapurl' => 'http://www.example.com/a?b=1&c=2'], $username, $password);
say('notification', $soap11, 'SoapSendMMSNot', ['destinationarray' => $numbers, 'originator' => '447700900001', 'subject' => 'Grüße',
    'mmsurl' => 'http://mms.example.com/1', 'filesize' => 30720, 'class' => 80, 'expiry' => 86400], $username, $password);
say('soap12', $soap12, 'SoapSendSms', $hi, $username, $password);
say('stranger', $soap11, 'SoapSendSms', $hi, $username, 'wrong');
say('stranger12', $soap12, 'SoapSendSms', $hi, $username, 'wrong');
say('anonymous', $soap11, 'SoapSendSms', $hi, '', '');
say('invalid', $soap11, 'SoapSendSms', ['destinationarray' => ['number' => ['0770']], 'message' => 'hi', 'messagetype' => 'loud', 'maxconcat' => 256], $username, $password);
