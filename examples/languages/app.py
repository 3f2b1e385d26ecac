"""A handler as platforms for functions call it."""


def handler(event, context):
    print("order", event["n"], "of request", context.aws_request_id)
    return {"charged": event["n"]}
