"""What the end-to-end test does at the stand-in for AWS, beside Terraform.

    stand_in.py ENDPOINT put ARN VALUE     puts a secret's value, as an operator does
    stand_in.py ENDPOINT get ARN           prints it, as ECS reads it for a task
    stand_in.py ENDPOINT messages URL      prints the queue's messages, one a line: group, event id, body's bytes
    stand_in.py ENDPOINT credentials PORT  hands out credentials on that port, as Fargate does to a task
"""

import datetime
import http.server
import json
import os

import sys

import botocore.session


class Credentials(http.server.BaseHTTPRequestHandler):
    """Those of the account in the environment, to whoever shows the task's token."""

    def do_GET(self):
        if self.headers["Authorization"] != os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN"]:
            self.send_error(403)
            return
        ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        body = json.dumps({
            "AccessKeyId": os.environ["AWS_ACCESS_KEY_ID"],
            "SecretAccessKey": os.environ["AWS_SECRET_ACCESS_KEY"],
            "Token": "of the task",
            "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(endpoint, command, what, *rest):
    session = botocore.session.get_session()

    def client(service):
        return session.create_client(service, region_name="eu-central-1", endpoint_url=endpoint)

    if command == "credentials":
        http.server.HTTPServer(("127.0.0.1", int(what)), Credentials).serve_forever()
    elif command == "put":
        client("secretsmanager").put_secret_value(SecretId=what, SecretString=rest[0])
    elif command == "get":
        print(client("secretsmanager").get_secret_value(SecretId=what)["SecretString"])
    elif command == "messages":
        sqs = client("sqs")
        while True:
            answer = sqs.receive_message(
                QueueUrl=what, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
            )
            if not answer.get("Messages"):
                return
            for message in answer["Messages"]:
                event = message["MessageAttributes"]["ce-id"]["StringValue"]
                print(message["Attributes"]["MessageGroupId"], event, len(message["Body"]))
                sqs.delete_message(QueueUrl=what, ReceiptHandle=message["ReceiptHandle"])
    else:
        sys.exit(__doc__)


main(*sys.argv[1:])
