"""What the end-to-end test does at the stand-in for AWS, beside Terraform.

    stand_in.py ENDPOINT put ARN VALUE     puts a secret's value, as an operator does
    stand_in.py ENDPOINT get ARN           prints it, as ECS reads it for a task
    stand_in.py ENDPOINT messages URL      prints the queue's messages, one a line: group, event id, body's bytes
"""

import sys

import botocore.session


def main(endpoint, command, what, *rest):
    session = botocore.session.get_session()

    def client(service):
        return session.create_client(service, region_name="eu-central-1", endpoint_url=endpoint)

    if command == "put":
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
