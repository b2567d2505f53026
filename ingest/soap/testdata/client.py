"""Drives the SOAP interface with zeep, and prints what came of each step.

Usage: client.py WSDL USERNAME PASSWORD. A line of JSON a step: its name, and
the answer's children or the text of the Fault.
"""
import datetime
import json
import sys

import zeep

wsdl, username, password = sys.argv[1:]
client = zeep.Client(wsdl)
soap12 = client.bind("Messaging", "MessagingSoap12")
numbers = {"number": ["447700900123", "447700900124"]}


def say(step, call, user=username, secret=password, **fields):
    auth = {"auth": {"username": user, "password": secret}} if user else None
    try:
        answer = call(_soapheaders=auth, **fields)
        found = {name: answer[name] for name in ("responsecode", "creditsused", "description")}
    except zeep.exceptions.Fault as fault:
        found = {"fault": fault.message}
    print(json.dumps({"step": step, **found}), flush=True)


sms = client.service.SoapSendSms
say("text", sms, destinationarray=numbers, originator="Penstock", message="Fridge 3 is warm & <open> €", messagetype="text", maxconcat=3,
    dlrep={"callbackurl": "https://example.com/dlr?id=%msgid&code=%code", "callbacktype": "HTTPGET"})
say("later", sms, destinationarray=numbers, message="ç" * 71, messagetype="flash",
    sendtime=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1),
    dlrep={"callbackurl": "", "callbacktype": "NONE"})
say("binary", client.service.SoapSendBinarySms, destinationarray=numbers, data="00ff10", udh="0605040b8423f0", encoding=8)
say("push", client.service.SoapSendWapPush, destinationarray=numbers, originator="447700900001", waptitle="Offers", wapurl="http://www.example.com/a?b=1&c=2")
say("notification", client.service.SoapSendMMSNot, destinationarray=numbers, originator="447700900001", subject="Grüße",
    mmsurl="http://mms.example.com/1", filesize=30720, **{"class": 80}, expiry=86400)
say("soap12", soap12.SoapSendSms, destinationarray=numbers, message="hi", messagetype="text")
say("stranger", sms, secret="wrong", destinationarray=numbers, message="hi", messagetype="text")
say("stranger12", soap12.SoapSendSms, secret="wrong", destinationarray=numbers, message="hi", messagetype="text")
say("anonymous", sms, user="", destinationarray=numbers, message="hi", messagetype="text")
say("invalid", sms, destinationarray={"number": ["0770"]}, message="hi", messagetype="loud", maxconcat=256)
